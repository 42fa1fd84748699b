#include "controller/series/series_point.h"

#include <algorithm>
#include <limits>

namespace shoal::controller {
namespace {

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == ':' || c == '-';
}

bool IsName(std::string_view name, size_t longest) {
  return !name.empty() && name.size() <= longest && std::ranges::all_of(name, IsNameChar);
}

}  // namespace

bool IsMetricName(std::string_view name) {
  return IsName(name, kMaxMetricName) && name.front() != '.';
}

bool IsSeriesName(std::string_view name) {
  return IsName(name, kMaxSeriesName) && IsMetricName(MetricOf(name)) && !TaskOf(name).empty();
}

std::string SeriesName(std::string_view role, int index, std::string_view metric) {
  std::string name(role);
  name.append("-").append(std::to_string(index)).append(".").append(metric);
  return name;
}

std::string_view MetricOf(std::string_view series) {
  const size_t point = series.find('.');
  return point == std::string_view::npos ? std::string_view() : series.substr(point + 1);
}

std::string_view TaskOf(std::string_view series) {
  const size_t point = series.find('.');
  return point == std::string_view::npos ? std::string_view() : series.substr(0, point);
}

bool IsSummedMetric(std::string_view metric) {
  return metric == "rate" || metric.ends_with("_per_second") || metric == "cpu_cores" ||
         metric == "memory_bytes";
}

void MergeBucket(const SeriesBucket& other, SeriesBucket* into) {
  if (other.count == 0) return;
  if (into->count == 0) {
    const int64_t ms = into->ms;
    *into = other;
    into->ms = ms;
    return;
  }
  const uint64_t both = uint64_t{into->count} + other.count;
  into->min = std::min(into->min, other.min);
  into->max = std::max(into->max, other.max);
  into->mean += (other.mean - into->mean) * (other.count / static_cast<double>(both));
  into->count =
      static_cast<uint32_t>(std::min<uint64_t>(both, std::numeric_limits<uint32_t>::max()));
}

}  // namespace shoal::controller
