// Admission: which waiting jobs may start now, and for each that may not, why. A pure function of a
// snapshot: the controller calls it after every change, tests and the simulator without one.
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

// What all tasks of a job need at once (a gang). Millicores, so that sums are exact.
struct Demand {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t gpu = 0;
};

// What there is in all; nothing set: not limited (the local engine lets CPU be oversubscribed).
struct Capacity {
  std::optional<int64_t> cpu_milli;
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> gpu;
};

struct WaitingJob {
  std::string id;
  std::string name;
  int64_t order = 0;  // of submission; smaller came first, equal ones go by id
  Demand demand;
};

struct RunningJob {
  std::string id;
  std::string name;
  Demand demand;
};

struct Snapshot {
  std::vector<WaitingJob> waiting;
  std::vector<RunningJob> running;  // all that hold something: admitted, starting … finishing
  Capacity capacity;
};

// Every waiting job is in exactly one of the three.
struct Decision {
  std::vector<std::string> admit;                      // ids, in the order in which they may start
  std::map<std::string, std::string> pending_reasons;  // id → why it waits, one sentence
  std::map<std::string, std::string> rejected;  // id → why it can never start here, one sentence
};

// Thread-safe, without state.
class Admission {
 public:
  virtual ~Admission() = default;
  virtual std::string name() const = 0;
  virtual Decision Decide(const Snapshot& snapshot) const = 0;
};

// First in, first out: the first waiting job that does not fit holds back all that came later. What
// is admitted and what runs never exceeds the capacity. O(n log n).
std::unique_ptr<Admission> MakeFifoAdmission();

// The sum over all tasks of the job.
Demand DemandOf(const job::Job& job);

}  // namespace shoal::queue
