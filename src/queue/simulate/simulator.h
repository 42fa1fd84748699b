// Runs a trace through the scheduler in simulated time. The scheduler is the one that the
// controller uses; only the engines are simulated: a job starts at once, ends after its run time,
// and stops `preempt_grace` after it was told to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "queue/core/scheduler.h"
#include "queue/simulate/trace.h"

namespace shoal::queue {

struct JobOutcome {
  Millis started = kForever;  // first start; kForever: never
  Millis ended = kForever;
  Millis waited{0};  // in all, also after preemptions
  int32_t preempted = 0;
  int32_t resized = 0;
  double lost = 0;  // task-seconds of work done twice
  bool refused = false;
};

struct SimulationResult {
  std::vector<JobOutcome> jobs;  // as in the trace
  int64_t events = 0;            // submissions, starts, ends, preemptions, resizings, changes
  int64_t decisions = 0;
  Millis makespan{0};  // of the last end
  // While jobs still come, until the last submission: what is used of what there is.
  double loaded_seconds = 0;
  Amounts capacity;                       // of the machines with a limit, averaged
  std::array<double, kResources> used{};  // amount · seconds held by jobs
  std::vector<int64_t> decide_ns;         // time of each call of Decide, if asked for
};

struct SimulationOptions {
  bool time_decisions = false;
  // Jobs without `expected` are expected to run like the last two of the same user and size.
  bool learn_run_times = true;
};

// NotFound for a job of a queue that the policy does not have. Deterministic, except decide_ns.
Result<SimulationResult> Simulate(const Trace& trace, const Policy& policy,
                                  const SimulationOptions& options = {});

}  // namespace shoal::queue
