// Points of a series: the numbers that one task of a job reported under one name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::controller {

// One reported number. `ms`: milliseconds since the epoch.
struct SeriesPoint {
  int64_t ms = 0;
  double value = 0;
  bool operator==(const SeriesPoint&) const = default;
};

// The points of a period that begins at `ms`; a single point has min = max = mean.
struct SeriesBucket {
  int64_t ms = 0;
  uint32_t count = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  bool operator==(const SeriesBucket&) const = default;
};

// Times in files are within ±kMaxSeriesTime, which doubles hold exactly.
inline constexpr int64_t kMaxSeriesTime = int64_t{1} << 53;

// "worker-3.loss": the task, a point, and the name of the number, which may contain further points.
inline constexpr size_t kMaxMetricName = 64;
inline constexpr size_t kMaxSeriesName = 192;
// Whether a program may report a number under this name: 1 to 64 letters, digits and _ . : -
bool IsMetricName(std::string_view name);
// Whether a file or request may contain this name of a series.
bool IsSeriesName(std::string_view name);
std::string SeriesName(std::string_view role, int index, std::string_view metric);
// The part after the first point; empty if there is none.
std::string_view MetricOf(std::string_view series);
// The part before it.
std::string_view TaskOf(std::string_view series);

// Whether the numbers of a job's tasks add up (speeds, use of resources), by the metric's name.
bool IsSummedMetric(std::string_view metric);

inline SeriesBucket BucketOf(const SeriesPoint& point) {
  return {point.ms, 1, point.value, point.value, point.value};
}
// Adds the points of `other` to `into`, whose time stays.
void MergeBucket(const SeriesBucket& other, SeriesBucket* into);

}  // namespace shoal::controller
