#include "cli/jobs/job_json.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <optional>

#include "cli/terminal/styled_line.h"
#include "job/execution/job_dir.h"

namespace shoal::cli {

using controller::JobRecord;

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

json::object TaskToJson(const controller::TaskRecord& task) { return controller::ToJson(task); }

json::object EventToJson(const controller::Event& event) {
  json::object object{{"seq", event.seq}, {"time", FormatWall(event.time)}, {"type", event.type}};
  if (!event.body.empty()) object["body"] = event.body;
  return object;
}

std::string StateText(const JobRecord& job, bool unattended) {
  return std::string(job::NameOf(job.state)) + (unattended ? " (unattended)" : "");
}

Duration TimeSuspended(const std::vector<controller::Event>& events) {
  Duration sum{0};
  std::optional<WallTime> since;
  for (const controller::Event& event : events) {
    if (event.type == "suspended" && !since) since = event.time;
    if (since && (event.type == "running" || event.type == "ended")) {
      sum += std::max(Duration(0), Duration(event.time - *since));
      since.reset();
    }
  }
  return sum;
}

Duration TimeSuspended(Session& session, const std::string& id) {
  std::error_code error;
  if (!std::filesystem::exists(job::JobDir(session.home().job_dir(id)).resumes(), error))
    return Duration(0);
  const auto events = session.store().ReadEvents(id, 0, INT_MAX);
  return events.ok() ? TimeSuspended(*events) : Duration(0);
}

std::string RunTime(const JobRecord& job, WallTime now, Duration suspended) {
  if (job.started == WallTime{} || job.state == job::JobState::kSuspended) return "";
  const WallTime end = job.ended == WallTime{} ? now : job.ended;
  return FormatDuration(std::max(Duration(0), Duration(end - job.started) - suspended));
}

std::string Ago(WallTime then, WallTime now) {
  return FormatDuration(std::max(Duration(0), Duration(now - then))) + " ago";
}

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<int> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(static_cast<size_t>(widths[i] - Columns(row[i]) + 2), ' ');
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

}  // namespace shoal::cli
