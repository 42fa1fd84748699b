// What `shoal queue` shows: the tree of queues with their quotas, what they use, borrow and lend,
// and which jobs wait for what.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "queue/core/scheduler.h"

namespace shoal::queue {

// One resource of one flavor in one queue and those below it, in the units of Amounts.
struct ResourceStatus {
  size_t resource = 0;
  int64_t nominal = 0;   // quota of the queue and of those below it
  int64_t used = 0;      // what their jobs hold
  int64_t borrowed = 0;  // of that, beyond their nominal quota
  // Of their nominal quota, what others use, so that it is back only when these end or are
  // preempted. Not every borrowed amount is missing somewhere: idle quota covers it first.
  int64_t lent = 0;
  bool limited = false;  // a queue of the tree has a quota of it
};

struct FlavorStatus {
  std::string flavor;
  std::vector<ResourceStatus> resources;  // those with a quota or in use
};

struct WaitingJobStatus {
  std::string id;    // empty: the viewer may not see the job
  std::string name;  // likewise
  std::string team;
  std::string user;  // empty as `id`
  int32_t priority = 0;
  std::string reason;
};

struct QueueStatus {
  std::string name;
  std::string parent;
  int32_t depth = 0;
  bool leaf = true;
  QueueMode mode = QueueMode::kOpen;  // in force: its own or that of a queue above it
  double weight = 1;
  double share = 0;  // Ledger::share: dominant share with past usage, by weight
  int64_t running = 0;
  int64_t waiting = 0;
  std::vector<FlavorStatus> flavors;
  std::vector<WaitingJobStatus> jobs;  // of a leaf: the first ones of its line
};

// What there is of a flavor in all.
struct MachineStatus {
  std::string flavor;
  std::array<std::optional<int64_t>, kResources> total;  // none: not limited
  Amounts used;
};

struct QueueReport {
  std::vector<QueueStatus> queues;  // parents before children, each followed by its children
  std::vector<MachineStatus> machines;
  std::string default_queue;
};

struct ReportLimits {
  size_t jobs_of_queue = 20;  // waiting jobs that are listed of each queue
  size_t jobs = 1000;         // and of all
};

// Jobs that the viewer may not see are counted, and listed without name, id and user. Pure.
// O(queues · flavors + jobs).
QueueReport ReportQueues(const Scheduler& scheduler, const Viewer& viewer,
                         const ReportLimits& limits = {});

// "open", "hold", "drain".
const char* NameOf(QueueMode mode);
std::optional<QueueMode> ParseQueueMode(const std::string& name);

}  // namespace shoal::queue
