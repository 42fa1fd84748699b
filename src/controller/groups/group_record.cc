#include "controller/groups/group_record.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "job/execution/state.h"
#include "job/spec/members.h"
#include "job/spec/triggers_json.h"

namespace shoal::controller {
namespace {

constexpr std::string_view kMemberStates = ".usfcex";
constexpr size_t kMaxRungs = 64;
constexpr int64_t kMostKept = int64_t{1000} * 366 * 86'400'000;  // ms

int64_t Micros(WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

WallTime FromMicros(int64_t micros) { return WallTime(std::chrono::microseconds(micros)); }

// [[index, value], …]
json::array Pairs(const std::map<size_t, double>& values) {
  json::array array;
  for (const auto& [index, value] : values)
    array.push_back(json::array{static_cast<int64_t>(index), value});
  return array;
}

Result<std::map<size_t, double>> ParsePairs(const json::value& value, size_t members) {
  std::map<size_t, double> values;
  const Status wrong = InvalidArgument("expected pairs of a member's number and a value");
  if (!value.is_array()) return wrong;
  for (const json::value& item : value.get_array()) {
    if (!item.is_array() || item.get_array().size() != 2) return wrong;
    const json::value& index = item.get_array()[0];
    const json::value& number = item.get_array()[1];
    if (!index.is_int64() || index.get_int64() < 0 || !number.is_number()) return wrong;
    const auto member = static_cast<size_t>(index.get_int64());
    if (member >= members) return wrong;
    values[member] = number.to_number<double>();
  }
  return values;
}

Status ParseSweepState(const json::object& body, GroupRecord* group) {
  if (const json::value* const values = body.if_contains("values")) {
    TRY_ASSIGN(group->values, ParsePairs(*values, group->members.size()));
  }
  const json::value* const rungs = body.if_contains("rungs");
  if (rungs == nullptr) return Status::Ok();
  if (!rungs->is_array() || rungs->get_array().size() > kMaxRungs)
    return InvalidArgument("rungs: expected an array");
  for (const json::value& rung : rungs->get_array()) {
    TRY_ASSIGN(group->rungs.emplace_back(), ParsePairs(rung, group->members.size()));
  }
  return Status::Ok();
}

Status ParseRefusals(const json::object& body, GroupRecord* group) {
  const json::value* const refusals = body.if_contains("refusals");
  if (refusals == nullptr) return Status::Ok();
  if (!refusals->is_object()) return InvalidArgument("refusals: expected an object");
  for (const auto& [key, why] : refusals->get_object()) {
    size_t index = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
    if (error != std::errc() || end != key.data() + key.size() || !why.is_string())
      return InvalidArgument("refusals: expected sentences by a member's number");
    group->refusals[index] = why.get_string();
  }
  return Status::Ok();
}

}  // namespace

json::object ToJson(const StoredSubmission& source) {
  json::array set;
  for (const std::string& one : source.set) set.emplace_back(one);
  json::object object{{"text", source.text},     {"set", std::move(set)},
                      {"team", source.team},     {"user", source.user},
                      {"engine", source.engine}, {"directory", source.directory},
                      {"tree", source.tree}};
  if (source.document) object["document"] = *source.document;
  return object;
}

Result<StoredSubmission> ParseStoredSubmission(const json::object& object) {
  StoredSubmission source;
  TRY_ASSIGN(source.text, GetString(object, "text"));
  TRY_ASSIGN(source.team, GetString(object, "team"));
  TRY_ASSIGN(source.user, GetString(object, "user"));
  TRY_ASSIGN(source.engine, GetString(object, "engine"));
  TRY_ASSIGN(source.directory, GetString(object, "directory"));
  TRY_ASSIGN(source.tree, GetString(object, "tree"));
  if (object.contains("document")) {
    TRY_ASSIGN(const int64_t document, GetInt(object, "document"));
    if (document < 0) return InvalidArgument("document: expected a number from 0");
    source.document = static_cast<size_t>(document);
  }
  const json::value* const set = object.if_contains("set");
  if (set == nullptr || !set->is_array()) return InvalidArgument("set: expected an array");
  for (const json::value& one : set->get_array()) {
    if (!one.is_string()) return InvalidArgument("set: expected texts");
    source.set.emplace_back(one.get_string());
  }
  return source;
}

size_t GroupRecord::Count(MemberState wanted) const {
  return static_cast<size_t>(std::ranges::count(members, static_cast<char>(wanted)));
}

std::string MemberId(const std::string& group, size_t index) {
  return group + "-" + std::to_string(index);
}

json::object ToJson(const GroupRecord& group) {
  json::object body{{"name", group.name},
                    {"team", group.source.team},
                    {"user", group.source.user},
                    {"source", ToJson(group.source)},
                    {"triggers", job::EncodeTriggers(group.triggers)},
                    {"submitted", Micros(group.submitted)},
                    {"ended", Micros(group.ended)},
                    {"state", job::NameOf(group.state)},
                    {"reason", group.reason},
                    {"stop_reason", group.stop_reason},
                    {"stop_now", group.stop_now},
                    {"keep_ms", group.keep.count()},
                    {"members", group.members}};
  if (!group.refusals.empty()) {
    json::object refusals;
    for (const auto& [index, why] : group.refusals) refusals[std::to_string(index)] = why;
    body["refusals"] = std::move(refusals);
  }
  if (!group.has_sweep()) return body;
  json::array rungs;
  for (const auto& rung : group.rungs) rungs.push_back(Pairs(rung));
  body["rungs"] = std::move(rungs);
  body["values"] = Pairs(group.values);
  return body;
}

Result<GroupRecord> ParseGroup(const std::string& id, const json::object& body) {
  GroupRecord group;
  group.id = id;
  TRY_ASSIGN(group.name, GetString(body, "name"));
  const json::object* const source = FindObject(body, "source");
  const json::object* const triggers = FindObject(body, "triggers");
  if (source == nullptr || triggers == nullptr)
    return InvalidArgument("source, triggers: expected objects");
  TRY_ASSIGN(group.source, ParseStoredSubmission(*source));
  TRY(job::DecodeTriggers(*triggers, &group.triggers));
  TRY_ASSIGN(const int64_t submitted, GetInt(body, "submitted"));
  TRY_ASSIGN(const int64_t ended, GetInt(body, "ended"));
  group.submitted = FromMicros(submitted);
  group.ended = FromMicros(ended);
  TRY_ASSIGN(const std::string state, GetString(body, "state"));
  const auto known = job::ParseJobState(state);
  if (!known) return InvalidArgument("state: got " + state + ", expected a state of jobs");
  group.state = *known;
  TRY_ASSIGN(group.reason, GetString(body, "reason"));
  TRY_ASSIGN(group.stop_reason, GetString(body, "stop_reason"));
  group.stop_now = GetBoolOr(body, "stop_now", false);
  TRY_ASSIGN(const int64_t keep, GetInt(body, "keep_ms"));
  if (keep < 0 || keep > kMostKept) return InvalidArgument("keep_ms: expected at most 1000 years");
  group.keep = std::chrono::milliseconds(keep);
  TRY_ASSIGN(group.members, GetString(body, "members"));
  if (group.members.size() > job::kMaxMembers ||
      group.members.find_first_not_of(kMemberStates) != std::string::npos)
    return InvalidArgument("members: expected a letter for each member");
  TRY(ParseRefusals(body, &group));
  TRY(ParseSweepState(body, &group));
  return group;
}

std::vector<MemberView> MembersOfGroup(const GroupRecord& group) {
  const auto values = job::MembersOf(group.triggers);
  std::vector<MemberView> views(group.members.size());
  for (size_t i = 0; i < views.size(); ++i) {
    MemberView& view = views[i];
    view.index = i;
    view.state = group.member(i);
    if (values.ok() && i < values->size()) view.values = (*values)[i];
    for (size_t rung = 0; rung < group.rungs.size(); ++rung) {
      const auto found = group.rungs[rung].find(i);
      if (found == group.rungs[rung].end()) continue;
      view.rung = static_cast<int>(rung);
      view.objective = found->second;
    }
    if (const auto last = group.values.find(i); last != group.values.end())
      view.objective = last->second;
  }
  if (!group.has_sweep()) return views;
  const bool largest = group.triggers.sweep.goal == job::SweepGoal::kMaximize;
  std::ranges::stable_sort(views, [&](const MemberView& a, const MemberView& b) {
    if (a.objective.has_value() != b.objective.has_value()) return a.objective.has_value();
    if (!a.objective) return false;
    return largest ? *a.objective > *b.objective : *a.objective < *b.objective;
  });
  return views;
}

std::string_view NameOf(MemberState state) {
  switch (state) {
    case MemberState::kWaiting:
      return "waiting";
    case MemberState::kUnfinished:
      return "unfinished";
    case MemberState::kSucceeded:
      return "succeeded";
    case MemberState::kFailed:
      return "failed";
    case MemberState::kCancelled:
      return "cancelled";
    case MemberState::kStopped:
      return "stopped early";
    case MemberState::kRefused:
      return "refused";
  }
  return "";
}

}  // namespace shoal::controller
