#include <utility>

#include "api/server/handlers.h"
#include "controller/jobs/series_json.h"
#include "controller/series/series_files.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int64_t kDefaultPoints = 1000;
constexpr int64_t kMicros = 1000;  // of a millisecond

std::filesystem::path DirOf(const Backend& backend, const Call& call) {
  return controller::SeriesDir(backend.home.job_dir(call.job->id));
}

}  // namespace

void ListSeries(const Backend& backend, const CallPtr& call) {
  const auto series = controller::ListSeries(DirOf(backend, *call));
  if (!series.ok()) return call->answer(Problem(series.status()));
  json::array items;
  for (const controller::SeriesInfo& info : *series)
    items.push_back(controller::SeriesToJson(info));
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

void ReadSeries(const Backend& backend, const CallPtr& call) {
  controller::SeriesRange range;
  if (call->arguments.Has("from"))
    range.from_ms = (call->arguments.Integer("from", 0) + kMicros - 1) / kMicros;
  if (call->arguments.Has("to")) range.to_ms = call->arguments.Integer("to", 0) / kMicros;
  range.points = static_cast<size_t>(call->arguments.Integer("points", kDefaultPoints));
  const std::string name = call->arguments.PathText("name");
  const auto points = controller::ReadSeries(DirOf(backend, *call), name, range);
  if (!points.ok()) return call->answer(Problem(points.status()));
  call->answer(JsonReply(kOk, controller::PointsToJson(name, *points)));
}

}  // namespace shoal::api
