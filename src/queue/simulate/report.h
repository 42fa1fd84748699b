// What a simulation shows: waits, utilisation, fairness and preempted work, and the differences
// between two policies job by job, as a table, JSON or an SVG.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "queue/simulate/simulator.h"

namespace shoal::queue {

struct SimulationSummary {
  int64_t jobs = 0;
  int64_t ended = 0;
  int64_t refused = 0;
  double mean_wait = 0;  // seconds, of jobs that started
  double median_wait = 0;
  double p99_wait = 0;
  double slowdown = 0;     // mean of (wait + run) / max(run, 10 s)
  double utilisation = 0;  // of the scarcest limited resource, until the last submission
  double fairness = 0;     // Jain's index of the users' mean slowdowns; 1: all the same
  int64_t preemptions = 0;
  double lost_hours = 0;  // task-hours done twice
  double makespan = 0;    // seconds
};

SimulationSummary Summarize(const Trace& trace, const SimulationResult& result);
json::object SummaryJson(const SimulationSummary& summary);

// One policy that was simulated.
struct SimulatedPolicy {
  std::string name;
  SimulationResult result;
};

// A table with a column for each policy, and the `most` jobs whose waits differ most between the
// first and the last.
std::string ReportText(const Trace& trace, const std::vector<SimulatedPolicy>& policies,
                       size_t most);
// Distribution of the waits of each policy.
std::string ReportSvg(const Trace& trace, const std::vector<SimulatedPolicy>& policies);

}  // namespace shoal::queue
