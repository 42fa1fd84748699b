#include "rendezvous/journal/journal_record.h"

#include <limits>
#include <utility>

namespace shoal::rendezvous {
namespace {

using Kind = JournalRecord::Kind;

constexpr std::pair<Kind, std::string_view> kKinds[] = {
    {Kind::kJob, "job"},
    {Kind::kLauncherAssigned, "placed"},
    {Kind::kLeased, "leased"},
    {Kind::kLauncherLost, "unplaced"},
    {Kind::kGeneration, "generation"},
    {Kind::kStarted, "started"},
    {Kind::kDraining, "draining"},
    {Kind::kEnded, "ended"},
    {Kind::kResult, "result"},
    {Kind::kVerdict, "verdict"},
    {Kind::kReady, "ready"},
    {Kind::kRestart, "restart"},
    {Kind::kScale, "scale"},
    {Kind::kStalled, "stalled"},
    {Kind::kMoving, "moving"},
    {Kind::kResumed, "resumed"},
    {Kind::kExcluded, "excluded"},
};

bool IsOfTask(Kind kind) {
  return kind != Kind::kJob && kind != Kind::kGeneration && kind != Kind::kVerdict &&
         kind != Kind::kStalled && kind != Kind::kMoving && kind != Kind::kResumed;
}

void PutJob(const JournalRecord& record, json::object* object) {
  (*object)["state"] = job::NameOf(record.state);
  (*object)["stop"] = static_cast<int>(record.stop);
  if (record.decided) (*object)["decided"] = job::NameOf(*record.decided);
  if (!record.gathered) (*object)["gathered"] = false;
}

void PutLease(const JournalRecord& record, json::object* object) {
  (*object)["host"] = record.host;
  json::array ports;
  for (const uint16_t port : record.ports) ports.push_back(int64_t{port});
  (*object)["ports"] = std::move(ports);
}

void PutEnd(const JournalRecord& record, json::object* object) {
  if (record.end) (*object)["end"] = job::ToJson(*record.end);
  if (!record.last_line.empty()) (*object)["last_line"] = record.last_line;
  if (record.restart) (*object)["restart"] = true;
  if (record.counted) (*object)["counted"] = true;
  if (record.ignored) (*object)["ignored"] = true;
  if (record.exhausted) (*object)["exhausted"] = true;
  if (record.port_conflict) (*object)["stolen"] = true;
  if (record.consequence) (*object)["consequence"] = true;
  if (record.due.count() != 0) (*object)["due"] = record.due.count();
}

Result<int> GetSmall(const json::object& object, std::string_view field) {
  TRY_ASSIGN(const int64_t value, GetInt(object, field));
  if (value < 0 || value > std::numeric_limits<int>::max()) {
    return InvalidArgument("field '" + std::string(field) + "' is out of its range");
  }
  return static_cast<int>(value);
}

Result<job::JobState> GetState(const json::object& object, std::string_view field) {
  TRY_ASSIGN(const std::string name, GetString(object, field));
  const auto state = job::ParseJobState(name);
  if (!state) return InvalidArgument("'" + name + "' is not a state of a job");
  return *state;
}

Result<json::object> GetObject(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || !value->is_object()) {
    return InvalidArgument("field '" + std::string(field) + "': expected an object");
  }
  return value->get_object();
}

Status ReadJob(const json::object& object, JournalRecord* record) {
  TRY_ASSIGN(record->state, GetState(object, "state"));
  TRY_ASSIGN(const int stop, GetSmall(object, "stop"));
  if (stop > static_cast<int>(StopMode::kKill)) return InvalidArgument("field 'stop' is too large");
  record->stop = static_cast<StopMode>(stop);
  record->gathered = GetBoolOr(object, "gathered", true);
  if (object.if_contains("decided") != nullptr) {
    TRY_ASSIGN(record->decided, GetState(object, "decided"));
  }
  return Status::Ok();
}

Status ReadLease(const json::object& object, JournalRecord* record) {
  TRY_ASSIGN(record->host, GetString(object, "host"));
  const json::value* ports = object.if_contains("ports");
  if (ports == nullptr || !ports->is_array()) {
    return InvalidArgument("field 'ports': expected an array");
  }
  for (const json::value& port : ports->get_array()) {
    if (!port.is_int64() || port.get_int64() < 1 || port.get_int64() > 65535) {
      return InvalidArgument("field 'ports': expected numbers from 1 to 65535");
    }
    record->ports.push_back(static_cast<uint16_t>(port.get_int64()));
  }
  return Status::Ok();
}

Status ReadEnd(const json::object& object, JournalRecord* record) {
  TRY_ASSIGN(const json::object end, GetObject(object, "end"));
  TRY_ASSIGN(record->end, job::TaskEndFromJson(end));
  record->last_line = GetStringOr(object, "last_line", "");
  record->restart = GetBoolOr(object, "restart", false);
  record->counted = GetBoolOr(object, "counted", false);
  record->ignored = GetBoolOr(object, "ignored", false);
  record->exhausted = GetBoolOr(object, "exhausted", false);
  record->port_conflict = GetBoolOr(object, "stolen", false);
  record->consequence = GetBoolOr(object, "consequence", false);
  record->due = std::chrono::milliseconds(GetIntOr(object, "due", 0));
  return Status::Ok();
}

Status ReadByKind(const json::object& object, JournalRecord* record) {
  switch (record->kind) {
    case Kind::kJob:
      return ReadJob(object, record);
    case Kind::kLauncherAssigned: {
      TRY_ASSIGN(record->incarnation, GetSmall(object, "incarnation"));
      TRY_ASSIGN(record->instance, GetString(object, "instance"));
      return Status::Ok();
    }
    case Kind::kLeased:
      return ReadLease(object, record);
    case Kind::kGeneration: {
      record->restart = GetBoolOr(object, "restart", false);
      TRY_ASSIGN(record->generation, GetInt(object, "generation"));
      TRY_ASSIGN(record->body, GetObject(object, "body"));
      return Status::Ok();
    }
    case Kind::kEnded:
      return ReadEnd(object, record);
    case Kind::kResult: {
      TRY_ASSIGN(record->body, GetObject(object, "body"));
      return Status::Ok();
    }
    case Kind::kVerdict: {
      TRY_ASSIGN(const json::object verdict, GetObject(object, "verdict"));
      TRY_ASSIGN(record->verdict, VerdictFromJson(verdict));
      return Status::Ok();
    }
    case Kind::kRestart: {
      TRY_ASSIGN(const std::string scope, GetString(object, "scope"));
      if (scope != "role" && scope != "job") return InvalidArgument("field 'scope' is unknown");
      record->scope = scope == "job" ? job::RestartScope::kJob : job::RestartScope::kRole;
      record->due = std::chrono::milliseconds(GetIntOr(object, "due", 0));
      record->port_conflict = GetBoolOr(object, "stolen", false);
      return Status::Ok();
    }
    case Kind::kScale:
    case Kind::kResumed: {
      TRY_ASSIGN(record->replicas, GetSmall(object, "replicas"));
      return Status::Ok();
    }
    case Kind::kLauncherLost:
    case Kind::kDraining:
      record->restart = GetBoolOr(object, "restart", false);
      record->due = std::chrono::milliseconds(GetIntOr(object, "due", 0));
      return Status::Ok();
    case Kind::kStalled: {
      record->counted = GetBoolOr(object, "counted", false);
      TRY_ASSIGN(record->body, GetObject(object, "body"));
      return Status::Ok();
    }
    case Kind::kExcluded:
    case Kind::kStarted:
    case Kind::kReady:
    case Kind::kMoving:
      return Status::Ok();
  }
  return Status::Ok();
}

Result<Kind> ParseKind(std::string_view name) {
  for (const auto& [kind, text] : kKinds) {
    if (text == name) return kind;
  }
  return InvalidArgument("'" + std::string(name) + "' is not a kind of record");
}

}  // namespace

std::string JournalRecordToText(const JournalRecord& record) {
  json::object object{{"seq", record.seq}, {"ms", record.at.count()}, {"at", record.wall}};
  for (const auto& [kind, text] : kKinds) {
    if (kind == record.kind) object["fact"] = text;
  }
  if (IsOfTask(record.kind)) {
    object["task"] = record.task;
    object["attempt"] = record.attempt;
  }
  if (record.kind == Kind::kJob) PutJob(record, &object);
  if (record.kind == Kind::kLauncherAssigned) {
    object["incarnation"] = record.incarnation;
    object["instance"] = record.instance;
  }
  if (!record.node.empty()) object["node"] = record.node;
  if (record.kind == Kind::kLeased) PutLease(record, &object);
  if (record.kind == Kind::kGeneration) object["generation"] = record.generation;
  if (record.kind == Kind::kGeneration || record.kind == Kind::kResult ||
      record.kind == Kind::kStalled) {
    object["body"] = record.body;
  }
  if (record.kind == Kind::kStalled && record.counted) object["counted"] = true;
  if (record.kind == Kind::kEnded) PutEnd(record, &object);
  if (record.kind == Kind::kScale || record.kind == Kind::kResumed)
    object["replicas"] = record.replicas;
  const bool may_restart = record.kind == Kind::kGeneration || record.kind == Kind::kDraining ||
                           record.kind == Kind::kLauncherLost;
  if (may_restart && record.restart) object["restart"] = true;
  if (record.kind == Kind::kRestart) {
    object["scope"] = record.scope == job::RestartScope::kJob ? "job" : "role";
    object["due"] = record.due.count();
    if (record.port_conflict) object["stolen"] = true;
  }
  if (record.kind == Kind::kDraining && record.due.count() != 0) object["due"] = record.due.count();
  if (record.kind == Kind::kVerdict) object["verdict"] = VerdictToJson(record.verdict);
  if (!record.text.empty()) object["text"] = record.text;
  return ToText(object);
}

Result<JournalRecord> JournalRecordFromText(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  JournalRecord record;
  TRY_ASSIGN(const std::string kind, GetString(object, "fact"));
  TRY_ASSIGN(record.kind, ParseKind(kind));
  TRY_ASSIGN(record.seq, GetInt(object, "seq"));
  TRY_ASSIGN(const int64_t at, GetInt(object, "ms"));
  record.at = std::chrono::milliseconds(at);
  record.wall = GetStringOr(object, "at", "");
  record.text = GetStringOr(object, "text", "");
  record.node = GetStringOr(object, "node", "");
  if (IsOfTask(record.kind)) {
    TRY_ASSIGN(record.task, GetSmall(object, "task"));
    TRY_ASSIGN(record.attempt, GetSmall(object, "attempt"));
  }
  TRY(ReadByKind(object, &record));
  return record;
}

int64_t LastSeqBeforeResume(const std::vector<JournalRecord>& records) {
  int64_t after = 0;
  for (const JournalRecord& record : records) {
    if (record.kind == JournalRecord::Kind::kResumed) after = record.seq - 1;
  }
  return after;
}

}  // namespace shoal::rendezvous
