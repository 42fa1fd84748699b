#include "cli/jobs/curves.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace shoal::cli {
namespace {

using controller::SeriesBucket;
using controller::SeriesInfo;

bool IsLoss(const std::string& metric) { return metric.ends_with("loss"); }
bool IsSpeed(const std::string& metric) {
  return metric == "rate" || metric.ends_with("_per_second");
}

Status UnknownMetric(const std::vector<SeriesInfo>& series, const std::string& metric) {
  std::string text;
  for (const std::string& name : MetricNames(series)) text += (text.empty() ? "" : ", ") + name;
  if (text.empty()) return NotFound("the job has reported no numbers yet");
  return NotFound("the job has no metric " + metric + "; it has " + text);
}

// The tasks' values at equally distant times: of each the last one before, from its first point to
// its last one.
class Combiner {
 public:
  Combiner(double from, double to, size_t points)
      : from_(from),
        step_(points > 1 ? (to - from) / static_cast<double>(points - 1) : 0),
        sums_(points),
        counts_(points) {}

  void AddTask(const std::vector<SeriesBucket>& buckets) {
    size_t next = 0;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const double time = from_ + step_ * static_cast<double>(i) + step_ / 2;
      const size_t before = next;
      while (next < buckets.size() && static_cast<double>(buckets[next].ms) <= time) ++next;
      const bool over = next == buckets.size() && before == next;
      if (next == 0 || (over && sums_.size() > 1)) continue;
      sums_[i] += buckets[next - 1].mean;
      ++counts_[i];
    }
  }

  std::vector<CurvePoint> Points(bool summed) const {
    std::vector<CurvePoint> points;
    for (size_t i = 0; i < sums_.size(); ++i) {
      if (counts_[i] == 0) continue;
      const double many = summed ? 1 : static_cast<double>(counts_[i]);
      points.push_back({step_ * static_cast<double>(i) / 1000, sums_[i] / many});
    }
    return points;
  }

 private:
  const double from_;  // ms
  const double step_;
  std::vector<double> sums_;
  std::vector<size_t> counts_;
};

}  // namespace

std::vector<std::string> MetricNames(const std::vector<SeriesInfo>& series) {
  std::set<std::string> names;
  for (const SeriesInfo& info : series) names.emplace(controller::MetricOf(info.name));
  return {names.begin(), names.end()};
}

std::vector<std::string> MainMetrics(const std::vector<std::string>& metrics) {
  std::vector<std::string> main;
  std::ranges::copy_if(metrics, std::back_inserter(main), IsLoss);
  std::ranges::copy_if(metrics, std::back_inserter(main), IsSpeed);
  return main;
}

Result<Curve> ReadCurve(controller::Jobs* jobs, const std::string& id,
                        const std::vector<SeriesInfo>& series, const std::string& metric,
                        size_t points) {
  std::vector<SeriesInfo> chosen;
  std::ranges::copy_if(series, std::back_inserter(chosen), [&](const SeriesInfo& info) {
    return controller::MetricOf(info.name) == metric;
  });
  if (chosen.empty()) return UnknownMetric(series, metric);
  const int64_t from = std::ranges::min(chosen, {}, &SeriesInfo::first_ms).first_ms;
  const int64_t to = std::ranges::max(chosen, {}, &SeriesInfo::last_ms).last_ms;
  const uint64_t most = std::ranges::max(chosen, {}, &SeriesInfo::points).points;
  const size_t wanted = std::max<size_t>(1, std::min<uint64_t>(points, most));
  Combiner combiner(static_cast<double>(from), static_cast<double>(to), wanted);
  for (const SeriesInfo& info : chosen) {
    TRY_ASSIGN(const std::vector<SeriesBucket> buckets,
               jobs->ReadSeries(id, info.name, {.points = 2 * points}));
    combiner.AddTask(buckets);
  }
  const bool summed = controller::IsSummedMetric(metric);
  return Curve{metric, summed, chosen.size(), combiner.Points(summed)};
}

}  // namespace shoal::cli
