// `shoal why`: the smallest change that starts a waiting job now. Each answer was tried in a copy
// of the scheduler before it is given.
#pragma once

#include <string>
#include <vector>

#include "queue/core/scheduler.h"

namespace shoal::queue {

enum class ChangeKind : uint8_t {
  kFewerTasks,  // the same job with `tasks` tasks of its elastic role
  kFlavor,      // on another flavor, which the job does not allow now
  kQueue,       // in another queue
  kPriority,    // with a higher priority
};

// Ordered by how much they ask of the submitter: kind first, then least difference.
struct Change {
  ChangeKind kind = ChangeKind::kFewerTasks;
  int32_t tasks = 0;      // kFewerTasks
  std::string name;       // of the flavor or the queue
  int32_t priority = 0;   // kPriority
  bool preempts = false;  // others would be preempted or shrunk for it

  bool operator==(const Change&) const = default;
};

// Options of a search.
struct WhyLimits {
  int32_t priorities = 1;  // steps of 10 above the job's own that are tried
  size_t queues = 64;      // other queues that are tried
};

// The changes of each kind that start the job in the next decision, the smallest of each kind: the
// most tasks, the first flavor and queue in the policy's order, the lowest priority. Empty if the
// job does not wait, or if none does. Pure. O(jobs · changes tried).
std::vector<Change> ChangesThatStart(const Scheduler& scheduler, JobRef job,
                                     const WhyLimits& limits = {});

// Whether the job starts, or gets resources set aside, in the next decision after the change. Used
// for verification by others too.
struct Trial {
  bool starts = false;
  bool preempts = false;
};
Trial TryChange(const Scheduler& scheduler, JobRef job, const Change& change);

// "with 3 workers instead of 4", "in queue b", "on flavor t4".
std::string ChangeText(const Scheduler& scheduler, JobRef job, const Change& change);

}  // namespace shoal::queue
