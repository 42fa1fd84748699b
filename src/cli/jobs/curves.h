// Curves of a job: its tasks' series of one number, combined to one line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/jobs/jobs.h"

namespace shoal::cli {

struct CurvePoint {
  double seconds = 0;  // since the curve's first point
  double value = 0;
};

struct Curve {
  std::string metric;
  bool summed = false;  // over the tasks (speeds, use of resources); else their mean
  size_t tasks = 0;     // with points
  std::vector<CurvePoint> points;
};

// The names after the task ("loss"), each once, in alphabetical order.
std::vector<std::string> MetricNames(const std::vector<controller::SeriesInfo>& series);
// Of these, what says how a training goes: losses first, then speeds.
std::vector<std::string> MainMetrics(const std::vector<std::string>& metrics);

// At most `points` of equal distance in time. A task counts from its first point to its last one.
// NotFound names the metrics that there are.
Result<Curve> ReadCurve(controller::Jobs* jobs, const std::string& id,
                        const std::vector<controller::SeriesInfo>& series,
                        const std::string& metric, size_t points);

}  // namespace shoal::cli
