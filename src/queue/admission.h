// Admission decides which waiting jobs may start now, and gives a reason for each other one. It is
// a pure function of a snapshot; the controller calls it after every change.
//
// FIFO is the only policy so far; quotas and fair shares will be others behind the same interface.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/spec/job.h"

namespace shoal::queue {

// Resources of all tasks of a job together (gang scheduling). Millicores keep sums exact.
struct Demand {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t gpu = 0;
};

// Total resources. An unset field is unlimited (the local engine permits CPU oversubscription).
struct Capacity {
  std::optional<int64_t> cpu_milli;
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> gpu;
};

// A job that waits for admission.
struct WaitingJob {
  std::string id;
  std::string name;
  int64_t order = 0;  // order of submission, ascending; ties are ordered by id
  Demand demand;
};

// A job that holds resources.
struct RunningJob {
  std::string id;
  std::string name;
  Demand demand;
};

// Input of a decision.
struct Snapshot {
  std::vector<WaitingJob> waiting;
  std::vector<RunningJob> running;  // all jobs that hold resources: admitted, starting … finishing
  Capacity capacity;
};

// Every waiting job is in exactly one of the three fields.
struct SnapshotDecision {
  std::vector<std::string> admit;                      // ids, in the order in which they may start
  std::map<std::string, std::string> pending_reasons;  // id → reason of waiting, one sentence
  std::map<std::string, std::string>
      rejected;  // id → reason why it can never start here, one sentence
};

// An admission policy. Stateless and thread-safe.
class Admission {
 public:
  virtual ~Admission() = default;
  virtual std::string name() const = 0;
  virtual SnapshotDecision Decide(const Snapshot& snapshot) const = 0;
};

// First in, first out: the first waiting job that does not fit blocks all later ones. Running and
// admitted jobs together never exceed the capacity. O(n log n).
std::unique_ptr<Admission> MakeFifoAdmission();

// The sum of the resources of all tasks of the job.
Demand DemandOf(const job::Job& job);

}  // namespace shoal::queue
