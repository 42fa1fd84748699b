// Series as JSON: in `shoal show --json` and in the server's replies.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "controller/series/series_reader.h"

namespace shoal::controller {

// {"name", "points", "first_ms", "last_ms"}; times are milliseconds since the epoch.
json::object SeriesToJson(const SeriesInfo& info);
Result<SeriesInfo> SeriesFromJson(const json::object& object);

// {"name", "time_ms": […], "mean": […], "min": […], "max": […], "count": […]}: one element of each
// list for each period.
json::object PointsToJson(const std::string& name, const std::vector<SeriesBucket>& points);
// InvalidArgument unless all lists are there and equally long.
Result<std::vector<SeriesBucket>> PointsFromJson(const json::object& object);

}  // namespace shoal::controller
