// A trace: jobs with their submission and run times, and the machines, from a log of events
// (docs/queue.md has the format) or generated. Input of the simulator.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "queue/core/amounts.h"
#include "queue/core/job.h"
#include "queue/policy/policy.h"

namespace shoal::queue {

struct TraceJob {
  std::string id;
  int32_t queue = 0;  // number in Trace::names
  int32_t user = 0;
  int32_t team = 0;
  int32_t flavor = kNoIndex;  // that it needs; kNoIndex: any of its queue
  int32_t tasks = 1;          // with which `run_time` holds
  int32_t least = 1;
  int32_t most = 1;
  int32_t priority = 0;
  Amounts per_task;
  Millis submitted{0};
  Millis run_time{0};
  Millis expected{0};           // declared or learned; 0: unknown
  Millis checkpoint{0};         // interval; 0: none, so that a preemption loses everything
  Millis cancelled = kForever;  // while it waits
};

struct TraceMachines {
  Millis at{0};
  std::string flavor;
  Amounts total = kNoLimit;
};

struct Trace {
  std::vector<std::string> names = {""};  // of queues, users, teams and flavors
  std::vector<TraceJob> jobs;             // in order of submission
  std::vector<TraceMachines> machines;    // in order of time

  int32_t Intern(std::string_view name);
  const std::string& name(int32_t number) const { return names[static_cast<size_t>(number)]; }

 private:
  std::map<std::string, int32_t, std::less<>> numbers_;
};

// Reads JSON lines. InvalidArgument names `file`, the line and the field.
Result<Trace> ParseTrace(std::string_view text, const std::string& file);
// The inverse; one line a job and a change of machines.
std::string TraceText(const Trace& trace);

// A generated trace with a policy that suits it.
struct Scenario {
  Trace trace;
  Policy policy;
};

// Shapes: "kueue-baseline" (15,000 workloads in 30 queues of 5 cohorts), "kueue-large" (50,000 in
// 1,000 queues of 10), "kueue-large-2026" (60,000 in 2,000 of 20), as in Kueue's
// test/performance/scheduler/configs; "cluster": GPU jobs of ten teams with the distributions
// of sizes and run times that are reported for shared training clusters. `jobs`: of "cluster".
// NotFound for another shape.
Result<Scenario> GenerateTrace(const std::string& shape, int64_t jobs, uint64_t seed);

}  // namespace shoal::queue
