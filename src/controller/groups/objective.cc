#include "controller/groups/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "controller/series/series_reader.h"

namespace shoal::controller {
namespace {

// One task's objective, and what its rungs count.
struct TaskCurve {
  std::vector<SeriesBucket> values;
  std::vector<SeriesBucket> steps;  // of sweep.stop.by; empty: reports count
};

// A number that is none is the worst there is, so that it can be compared and stored.
double Comparable(double value, job::SweepGoal goal) {
  if (std::isfinite(value)) return value;
  return goal == job::SweepGoal::kMinimize ? std::numeric_limits<double>::max()
                                           : std::numeric_limits<double>::lowest();
}

// The value when the task had reached the rung.
std::optional<double> ValueAt(const TaskCurve& curve, const std::string& by, double rung) {
  if (by.empty()) {
    double reports = 0;
    for (const SeriesBucket& bucket : curve.values) {
      reports += bucket.count;
      if (reports >= rung) return bucket.mean;
    }
    return std::nullopt;
  }
  const auto reached = std::ranges::find_if(
      curve.steps, [rung](const SeriesBucket& bucket) { return bucket.max >= rung; });
  if (reached == curve.steps.end() || curve.values.empty()) return std::nullopt;
  // The newest value that is not later; programs report both in one line.
  auto after = std::ranges::upper_bound(curve.values, reached->ms, {}, &SeriesBucket::ms);
  if (after != curve.values.begin()) --after;
  return after->mean;
}

Result<std::vector<TaskCurve>> ReadCurves(const std::filesystem::path& dir,
                                          const job::Sweep& sweep) {
  TRY_ASSIGN(const std::vector<SeriesInfo> series, ListSeries(dir));
  std::vector<TaskCurve> curves;
  for (const SeriesInfo& info : series) {
    if (MetricOf(info.name) != sweep.objective) continue;
    TaskCurve& curve = curves.emplace_back();
    TRY_ASSIGN(curve.values, ReadSeries(dir, info.name, {}));
    if (sweep.stop.by.empty() || sweep.stop.first == 0) continue;
    const std::string steps = std::string(TaskOf(info.name)) + "." + sweep.stop.by;
    auto read = ReadSeries(dir, steps, {});
    if (read.ok()) curve.steps = std::move(*read);
    if (!read.ok() && read.status().code() != Code::kNotFound) return read.status();
  }
  std::erase_if(curves, [](const TaskCurve& curve) { return curve.values.empty(); });
  return curves;
}

}  // namespace

Result<Objective> ReadObjective(const std::filesystem::path& dir, const job::Sweep& sweep,
                                size_t most) {
  Objective objective;
  TRY_ASSIGN(const std::vector<TaskCurve> curves, ReadCurves(dir, sweep));
  if (curves.empty()) return objective;
  double sum = 0;
  for (const TaskCurve& curve : curves) sum += curve.values.back().mean;
  const auto tasks = static_cast<double>(curves.size());
  objective.last = Comparable(sum / tasks, sweep.goal);
  if (sweep.stop.first == 0) return objective;
  for (double rung = sweep.stop.first; objective.rungs.size() < most;
       rung *= sweep.stop.reduction) {
    double total = 0;
    for (const TaskCurve& curve : curves) {
      const auto value = ValueAt(curve, sweep.stop.by, rung);
      if (!value) return objective;
      total += *value;
    }
    objective.rungs.push_back(Comparable(total / tasks, sweep.goal));
  }
  return objective;
}

bool GoesOn(const std::map<size_t, double>& rung, double value, const job::Sweep& sweep) {
  const auto reduction = static_cast<size_t>(sweep.stop.reduction);
  if (rung.size() < reduction) return true;
  const auto better = static_cast<size_t>(std::ranges::count_if(rung, [&](const auto& other) {
    return sweep.goal == job::SweepGoal::kMinimize ? other.second < value : other.second > value;
  }));
  return better < rung.size() / reduction;
}

}  // namespace shoal::controller
