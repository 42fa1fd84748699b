#include "sql/process/messages.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"
#include "sql/syntax/script_text.h"

namespace shoal::sql {
namespace {

using Kind = SessionRequest::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 6> kKinds = {{
    {"begin", Kind::kBegin},
    {"run", Kind::kRun},
    {"stop", Kind::kStop},
    {"complete", Kind::kComplete},
    {"inspect", Kind::kInspect},
    {"answer", Kind::kAnswer},
}};

// A number of the object that is at least 0 and at most `most`.
Result<uint64_t> NumberOf(const json::object& object, std::string_view name, uint64_t other,
                          uint64_t most) {
  const int64_t value = GetIntOr(object, name, static_cast<int64_t>(other));
  if (value < 0 || static_cast<uint64_t>(value) > most)
    return InvalidArgument(std::string(name) + ": got " + std::to_string(value) +
                           ", expected a number from 0 to " + std::to_string(most));
  return static_cast<uint64_t>(value);
}

std::vector<std::string> TextsOf(const json::object& object, std::string_view name) {
  std::vector<std::string> texts;
  const json::value* const list = object.if_contains(name);
  if (list == nullptr || !list->is_array()) return texts;
  for (const json::value& one : list->get_array()) {
    if (one.is_string()) texts.emplace_back(one.get_string());
  }
  return texts;
}

WallTime TimeOf(const json::object& object, std::string_view name) {
  return WallTime(std::chrono::microseconds(GetIntOr(object, name, 0)));
}

}  // namespace

Result<SessionRequest> ParseSessionRequest(std::string_view line) {
  SessionRequest request;
  TRY_ASSIGN(request.body, ParseJsonObject(line));
  const std::string op = GetStringOr(request.body, "op", "");
  const auto kind = std::ranges::find(kKinds, op, &std::pair<std::string_view, Kind>::first);
  if (kind == kKinds.end())
    return InvalidArgument("op: got " + op.substr(0, 64) +
                           ", expected begin, run, stop, complete, inspect or answer");
  request.kind = kind->second;
  request.id = GetIntOr(request.body, "id", 0);
  request.text = GetStringOr(request.body, "text", "");
  request.name = GetStringOr(request.body, "name", "statement");
  TRY_ASSIGN(request.rows, NumberOf(request.body, "rows", request.rows, kMaxShownRows));
  TRY_ASSIGN(request.bytes, NumberOf(request.body, "bytes", 0, uint64_t{1} << 40));
  TRY_ASSIGN(request.cursor, NumberOf(request.body, "cursor", 0, kMaxScript));
  request.cursor = std::min(request.cursor, request.text.size());
  return request;
}

Result<SessionBegin> ParseSessionBegin(const json::object& body) {
  SessionBegin begin;
  TRY_ASSIGN(begin.directory, GetString(body, "directory"));
  begin.paths.own = TextsOf(body, "own");
  begin.paths.allowed = TextsOf(body, "allowed");
  begin.paths.denied = TextsOf(body, "denied");
  constexpr uint64_t kMost = uint64_t{1} << 50;
  TRY_ASSIGN(begin.caps.memory_bytes, NumberOf(body, "memory", 0, kMost));
  TRY_ASSIGN(begin.caps.spill_bytes, NumberOf(body, "spill", 0, kMost));
  TRY_ASSIGN(begin.caps.threads, NumberOf(body, "threads", 0, 1024));
  TRY_ASSIGN(const uint64_t seconds, NumberOf(body, "seconds", 0, 366 * 86'400));
  begin.caps.time = std::chrono::seconds(seconds);
  return begin;
}

json::object RowsEvent(int64_t id, const Grid& grid) {
  json::array columns;
  for (const std::string& name : grid.columns) columns.emplace_back(EscapedUtf8(name));
  json::array rows;
  for (const auto& row : grid.rows) rows.emplace_back(json::array(row.begin(), row.end()));
  return {{"event", "rows"},
          {"id", id},
          {"columns", std::move(columns)},
          {"types", json::array(grid.types.begin(), grid.types.end())},
          {"rows", std::move(rows)},
          {"more", grid.more}};
}

json::object FinishedEvent(int64_t id, const Status& status) {
  json::object event{{"event", "finished"}, {"id", id}, {"ok", status.ok()}};
  if (status.ok()) return event;
  event["code"] = CodeName(status.code());
  event["error"] = EscapedUtf8(status.message());
  return event;
}

Status ErrorOf(const json::object& body) {
  const std::string error = GetStringOr(body, "error", "");
  if (error.empty()) return Status::Ok();
  const int64_t code = GetIntOr(body, "code", static_cast<int64_t>(Code::kUnknown));
  const bool known = code > 0 && code <= static_cast<int64_t>(Code::kUnauthenticated);
  return Status(known ? static_cast<Code>(code) : Code::kUnknown, error);
}

Result<FinishedJob> ParseFinishedJob(const json::object& body) {
  TRY(ErrorOf(body));
  FinishedJob finished;
  TRY_ASSIGN(finished.id, GetString(body, "job"));
  TRY_ASSIGN(const std::string state, GetString(body, "state"));
  const auto known = job::ParseJobState(state);
  if (!known) return InvalidArgument("state: got " + state.substr(0, 64) + ", which is none");
  finished.state = *known;
  finished.reason = GetStringOr(body, "reason", "");
  finished.started = TimeOf(body, "started");
  finished.ended = TimeOf(body, "ended");
  return finished;
}

std::vector<ListedJob> ParseListedJobs(const json::object& body) {
  std::vector<ListedJob> jobs;
  const json::value* const list = body.if_contains("jobs");
  if (list == nullptr || !list->is_array()) return jobs;
  for (const json::value& one : list->get_array()) {
    if (!one.is_object()) continue;
    const json::object& job = one.get_object();
    jobs.push_back({GetStringOr(job, "id", ""), GetStringOr(job, "state", ""),
                    TimeOf(job, "submitted"), GetStringOr(job, "reason", ""),
                    GetStringOr(job, "algorithm", ""), GetStringOr(job, "model", "")});
  }
  return jobs;
}

}  // namespace shoal::sql
