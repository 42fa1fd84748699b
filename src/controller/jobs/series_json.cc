#include "controller/jobs/series_json.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace shoal::controller {
namespace {

constexpr std::array<std::string_view, 5> kColumns = {"time_ms", "mean", "min", "max", "count"};

Status Wrong(std::string_view column) {
  return InvalidArgument("field '" + std::string(column) +
                         "' is not a list of numbers as long as the others");
}

}  // namespace

json::object SeriesToJson(const SeriesInfo& info) {
  return {{"name", info.name},
          {"points", info.points},
          {"first_ms", info.first_ms},
          {"last_ms", info.last_ms}};
}

Result<SeriesInfo> SeriesFromJson(const json::object& object) {
  SeriesInfo info;
  TRY_ASSIGN(info.name, GetString(object, "name"));
  if (!IsSeriesName(info.name)) return InvalidArgument("field 'name' is no name of a series");
  TRY_ASSIGN(const int64_t points, GetInt(object, "points"));
  TRY_ASSIGN(info.first_ms, GetInt(object, "first_ms"));
  TRY_ASSIGN(info.last_ms, GetInt(object, "last_ms"));
  const bool in_time = info.first_ms >= -kMaxSeriesTime && info.last_ms <= kMaxSeriesTime;
  if (points < 0 || !in_time || info.last_ms < info.first_ms)
    return InvalidArgument("fields of series " + info.name + " contradict each other");
  info.points = static_cast<uint64_t>(points);
  return info;
}

json::object PointsToJson(const std::string& name, const std::vector<SeriesBucket>& points) {
  std::array<json::array, kColumns.size()> columns;
  for (json::array& column : columns) column.reserve(points.size());
  for (const SeriesBucket& point : points) {
    columns[0].emplace_back(point.ms);
    columns[1].emplace_back(point.mean);
    columns[2].emplace_back(point.min);
    columns[3].emplace_back(point.max);
    columns[4].emplace_back(int64_t{point.count});
  }
  json::object object{{"name", name}};
  for (size_t i = 0; i < kColumns.size(); ++i) object[kColumns[i]] = std::move(columns[i]);
  return object;
}

Result<std::vector<SeriesBucket>> PointsFromJson(const json::object& object) {
  std::array<const json::array*, kColumns.size()> columns{};
  for (size_t i = 0; i < kColumns.size(); ++i) {
    const json::value* const value = object.if_contains(kColumns[i]);
    if (value == nullptr || !value->is_array()) return Wrong(kColumns[i]);
    columns[i] = &value->get_array();
    if (columns[i]->size() != columns[0]->size()) return Wrong(kColumns[i]);
  }
  std::vector<SeriesBucket> points(columns[0]->size());
  for (size_t row = 0; row < points.size(); ++row) {
    std::array<double, kColumns.size()> numbers{};
    for (size_t i = 0; i < kColumns.size(); ++i) {
      boost::system::error_code error;
      numbers[i] = (*columns[i])[row].to_number<double>(error);
      if (error) return Wrong(kColumns[i]);
    }
    const bool counted = numbers[4] >= 1 && numbers[4] <= std::numeric_limits<uint32_t>::max();
    const auto limit = static_cast<double>(kMaxSeriesTime);
    if (!counted || numbers[0] < -limit || numbers[0] > limit) return Wrong(kColumns[0]);
    points[row] = {static_cast<int64_t>(numbers[0]), static_cast<uint32_t>(numbers[4]), numbers[2],
                   numbers[3], numbers[1]};
  }
  return points;
}

}  // namespace shoal::controller
