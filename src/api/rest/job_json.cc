#include "api/rest/job_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "api/people/identity.h"
#include "api/rest/router.h"
#include "base/utf8.h"
#include "job/execution/state.h"

namespace shoal::api {
namespace {

using controller::Event;
using controller::JobRecord;
using controller::LogKey;

Result<WallTime> TimeOf(const json::object& object, std::string_view field) {
  const json::value* const value = object.if_contains(field);
  if (value == nullptr) return WallTime{};
  const std::optional<int64_t> micros =
      value->is_string() ? ParseTime(value->get_string()) : std::nullopt;
  if (!micros) return InvalidArgument(std::string(field) + ": expected a time");
  return WallOf(*micros);
}

json::object ObjectOr(const json::object& object, std::string_view field) {
  const json::value* const value = object.if_contains(field);
  return value != nullptr && value->is_object() ? value->get_object() : json::object();
}

std::optional<int> Number(std::string_view text) {
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || rest != text.data() + text.size() || number < 0)
    return std::nullopt;
  return number;
}

}  // namespace

json::object JobToReply(const JobRecord& job, bool whole) {
  json::object object{{"id", job.id},
                      {"name", job.name},
                      {"state", job::NameOf(job.state)},
                      {"reason", job.reason},
                      {"engine", job.engine},
                      {"team", job.team},
                      {"user", job.user},
                      {"submitted", FormatWall(job.submitted)}};
  if (job.started != WallTime{}) object["started"] = FormatWall(job.started);
  if (job.ended != WallTime{}) object["ended"] = FormatWall(job.ended);
  if (!job.result.empty()) object["result"] = job.result;
  if (!job.damage.empty()) object["damage"] = job.damage;
  if (!job.labels.empty()) {
    json::object labels;
    for (const auto& [name, value] : job.labels) labels[name] = value;
    object["labels"] = std::move(labels);
  }
  object["last_seq"] = job.last_seq;
  if (whole) object["job"] = job.job;
  return object;
}

json::object SummaryToReply(const controller::JobSummary& job) {
  JobRecord record;
  record.id = job.id;
  record.name = job.name;
  record.state = job.state;
  record.reason = job.reason;
  record.engine = job.engine;
  record.team = job.team;
  record.user = job.user;
  record.labels = job.labels;
  record.submitted = job.submitted;
  record.started = job.started;
  record.ended = job.ended;
  record.last_seq = job.last_seq;
  return JobToReply(record, false);
}

Result<JobRecord> ParseJobReply(const json::object& object) {
  JobRecord job;
  TRY_ASSIGN(job.id, GetString(object, "id"));
  TRY_ASSIGN(const std::string state, GetString(object, "state"));
  const auto parsed = job::ParseJobState(state);
  if (!parsed) return InvalidArgument("state: got " + state + ", expected a state of jobs");
  job.state = *parsed;
  job.name = GetStringOr(object, "name", "");
  job.reason = GetStringOr(object, "reason", "");
  job.engine = GetStringOr(object, "engine", "");
  job.team = GetStringOr(object, "team", "");
  job.user = GetStringOr(object, "user", "");
  job.damage = GetStringOr(object, "damage", "");
  job.last_seq = GetIntOr(object, "last_seq", 0);
  job.result = ObjectOr(object, "result");
  job.job = ObjectOr(object, "job");
  TRY_ASSIGN(job.submitted, TimeOf(object, "submitted"));
  TRY_ASSIGN(job.started, TimeOf(object, "started"));
  TRY_ASSIGN(job.ended, TimeOf(object, "ended"));
  return job;
}

json::object EventToReply(const std::string& job, const Event& event) {
  json::object object{
      {"job", job}, {"seq", event.seq}, {"time", FormatWall(event.time)}, {"type", event.type}};
  if (!event.body.empty()) object["body"] = event.body;
  return object;
}

Result<Event> ParseEventReply(const json::object& object) {
  Event event;
  TRY_ASSIGN(event.seq, GetInt(object, "seq"));
  TRY_ASSIGN(event.type, GetString(object, "type"));
  TRY_ASSIGN(event.time, TimeOf(object, "time"));
  event.body = ObjectOr(object, "body");
  return event;
}

json::object LogToReply(const controller::LogInfo& log) {
  return {{"task", log.key.role + "-" + std::to_string(log.key.index)},
          {"role", log.key.role},
          {"index", log.key.index},
          {"attempt", log.key.attempt},
          {"bytes", log.bytes}};
}

Result<controller::LogInfo> ParseLogReply(const json::object& object) {
  controller::LogInfo log;
  TRY_ASSIGN(log.key.role, GetString(object, "role"));
  TRY_ASSIGN(const int64_t index, GetInt(object, "index"));
  TRY_ASSIGN(const int64_t attempt, GetInt(object, "attempt"));
  TRY_ASSIGN(log.bytes, GetInt(object, "bytes"));
  log.key.index = static_cast<int>(index);
  log.key.attempt = static_cast<int>(attempt);
  return log;
}

// Microseconds, not RFC 3339: an index has an entry for each second.
json::object LogTimesToReply(const rendezvous::LogTimes& times) {
  json::array items;
  for (const rendezvous::LogTime& entry : times.entries)
    items.push_back(json::array{entry.offset, entry.time.time_since_epoch().count()});
  return {{"modified", times.modified.time_since_epoch().count()}, {"items", std::move(items)}};
}

Result<rendezvous::LogTimes> ParseLogTimesReply(const json::object& object) {
  rendezvous::LogTimes times;
  TRY_ASSIGN(const int64_t modified, GetInt(object, "modified"));
  times.modified = WallOf(modified);
  const json::value* const items = object.if_contains("items");
  if (items == nullptr || !items->is_array())
    return DataLoss("the server's answer has no list of times");
  for (const json::value& item : items->get_array()) {
    const json::array* const pair = item.if_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_int64() || !(*pair)[1].is_int64())
      return DataLoss("the server's list of times has an item that is no offset and time");
    times.entries.push_back({(*pair)[0].get_int64(), WallOf((*pair)[1].get_int64())});
  }
  const auto& entries = times.entries;
  if (!std::ranges::is_sorted(entries, {}, &rendezvous::LogTime::offset) ||
      entries.size() > rendezvous::kMaxLogTimes)
    return DataLoss("the server's list of times is not in order, or too long");
  return times;
}

json::object OutputToReply(const controller::OutputFile& file) {
  return {{"task", ValidUtf8(file.task)},
          {"attempt", file.attempt},
          {"path", ValidUtf8(file.path)},
          {"bytes", file.bytes},
          {"link", file.link}};
}

Result<controller::OutputFile> ParseOutputReply(const json::object& object) {
  controller::OutputFile file;
  TRY_ASSIGN(file.task, GetString(object, "task"));
  TRY_ASSIGN(file.path, GetString(object, "path"));
  TRY_ASSIGN(const int64_t attempt, GetInt(object, "attempt"));
  TRY_ASSIGN(file.bytes, GetInt(object, "bytes"));
  file.attempt = static_cast<int>(attempt);
  file.link = GetBoolOr(object, "link", false);
  return file;
}

std::string LogName(const LogKey& key) {
  return key.role + "-" + std::to_string(key.index) + "." + std::to_string(key.attempt);
}

std::optional<LogKey> ParseLogName(std::string_view text) {
  const size_t dot = text.rfind('.');
  const size_t dash = text.rfind('-', dot);
  if (dot == std::string_view::npos || dash == std::string_view::npos || dash == 0)
    return std::nullopt;
  const auto index = Number(text.substr(dash + 1, dot - dash - 1));
  const auto attempt = Number(text.substr(dot + 1));
  if (!index || !attempt) return std::nullopt;
  LogKey key{std::string(text.substr(0, dash)), *index, *attempt};
  if (!rendezvous::IsFileName(key)) return std::nullopt;
  return key;
}

std::string ETagOf(const JobRecord& job) { return "\"" + std::to_string(job.last_seq) + "\""; }

}  // namespace shoal::api
