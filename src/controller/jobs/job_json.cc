#include "controller/jobs/job_json.h"

#include <algorithm>
#include <optional>

namespace shoal::controller {

json::object JobToJson(const JobRecord& job, bool unattended) {
  json::object object{
      {"id", job.id},         {"name", job.name},     {"state", job::NameOf(job.state)},
      {"reason", job.reason}, {"engine", job.engine}, {"submitted", FormatWall(job.submitted)}};
  if (unattended) object["unattended"] = true;
  if (!job.damage.empty()) object["damage"] = job.damage;
  if (job.started != WallTime{}) object["started"] = FormatWall(job.started);
  if (job.ended != WallTime{}) object["ended"] = FormatWall(job.ended);
  if (!job.result.empty()) object["result"] = job.result;
  return object;
}

json::object TaskToJson(const TaskRecord& task) { return ToJson(task); }

json::object EventToJson(const Event& event) {
  json::object object{{"seq", event.seq}, {"time", FormatWall(event.time)}, {"type", event.type}};
  if (!event.body.empty()) object["body"] = event.body;
  return object;
}

Duration TimeSuspended(const std::vector<Event>& events) {
  Duration sum{0};
  std::optional<WallTime> since;
  for (const Event& event : events) {
    if (event.type == "suspended" && !since) since = event.time;
    if (since && (event.type == "running" || event.type == "ended")) {
      sum += std::max(Duration(0), Duration(event.time - *since));
      since.reset();
    }
  }
  return sum;
}

}  // namespace shoal::controller
