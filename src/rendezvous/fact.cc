#include "rendezvous/fact.h"

#include <limits>
#include <utility>

namespace shoal::rendezvous {
namespace {

using Kind = Fact::Kind;

constexpr std::pair<Kind, std::string_view> kKinds[] = {
    {Kind::kJob, "job"},           {Kind::kPlaced, "placed"},         {Kind::kLeased, "leased"},
    {Kind::kUnplaced, "unplaced"}, {Kind::kGeneration, "generation"}, {Kind::kStarted, "started"},
    {Kind::kDraining, "draining"}, {Kind::kEnded, "ended"},           {Kind::kResult, "result"},
    {Kind::kVerdict, "verdict"},   {Kind::kReady, "ready"},           {Kind::kRestart, "restart"},
    {Kind::kScale, "scale"},       {Kind::kStalled, "stalled"},       {Kind::kMoving, "moving"},
    {Kind::kResumed, "resumed"},   {Kind::kExcluded, "excluded"},
};

bool IsOfTask(Kind kind) {
  return kind != Kind::kJob && kind != Kind::kGeneration && kind != Kind::kVerdict &&
         kind != Kind::kStalled && kind != Kind::kMoving && kind != Kind::kResumed;
}

void PutJob(const Fact& fact, json::object* object) {
  (*object)["state"] = job::NameOf(fact.state);
  (*object)["stop"] = static_cast<int>(fact.stop);
  if (fact.decided) (*object)["decided"] = job::NameOf(*fact.decided);
  if (!fact.gathered) (*object)["gathered"] = false;
}

void PutLease(const Fact& fact, json::object* object) {
  (*object)["host"] = fact.host;
  json::array ports;
  for (const uint16_t port : fact.ports) ports.push_back(int64_t{port});
  (*object)["ports"] = std::move(ports);
}

void PutEnd(const Fact& fact, json::object* object) {
  if (fact.end) (*object)["end"] = job::ToJson(*fact.end);
  if (!fact.last_line.empty()) (*object)["last_line"] = fact.last_line;
  if (fact.restart) (*object)["restart"] = true;
  if (fact.counted) (*object)["counted"] = true;
  if (fact.ignored) (*object)["ignored"] = true;
  if (fact.exhausted) (*object)["exhausted"] = true;
  if (fact.stolen) (*object)["stolen"] = true;
  if (fact.consequence) (*object)["consequence"] = true;
  if (fact.due.count() != 0) (*object)["due"] = fact.due.count();
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
  if (!state) return InvalidArgument("'" + name + "' is no state of a job");
  return *state;
}

Result<json::object> GetObject(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || !value->is_object()) {
    return InvalidArgument("field '" + std::string(field) + "': expected an object");
  }
  return value->get_object();
}

Status ReadJob(const json::object& object, Fact* fact) {
  TRY_ASSIGN(fact->state, GetState(object, "state"));
  TRY_ASSIGN(const int stop, GetSmall(object, "stop"));
  if (stop > static_cast<int>(StopMode::kKill)) return InvalidArgument("field 'stop' is too large");
  fact->stop = static_cast<StopMode>(stop);
  fact->gathered = GetBoolOr(object, "gathered", true);
  if (object.if_contains("decided") != nullptr) {
    TRY_ASSIGN(fact->decided, GetState(object, "decided"));
  }
  return Status::Ok();
}

Status ReadLease(const json::object& object, Fact* fact) {
  TRY_ASSIGN(fact->host, GetString(object, "host"));
  const json::value* ports = object.if_contains("ports");
  if (ports == nullptr || !ports->is_array()) {
    return InvalidArgument("field 'ports': expected an array");
  }
  for (const json::value& port : ports->get_array()) {
    if (!port.is_int64() || port.get_int64() < 1 || port.get_int64() > 65535) {
      return InvalidArgument("field 'ports': expected numbers from 1 to 65535");
    }
    fact->ports.push_back(static_cast<uint16_t>(port.get_int64()));
  }
  return Status::Ok();
}

Status ReadEnd(const json::object& object, Fact* fact) {
  TRY_ASSIGN(const json::object end, GetObject(object, "end"));
  TRY_ASSIGN(fact->end, job::TaskEndFromJson(end));
  fact->last_line = GetStringOr(object, "last_line", "");
  fact->restart = GetBoolOr(object, "restart", false);
  fact->counted = GetBoolOr(object, "counted", false);
  fact->ignored = GetBoolOr(object, "ignored", false);
  fact->exhausted = GetBoolOr(object, "exhausted", false);
  fact->stolen = GetBoolOr(object, "stolen", false);
  fact->consequence = GetBoolOr(object, "consequence", false);
  fact->due = std::chrono::milliseconds(GetIntOr(object, "due", 0));
  return Status::Ok();
}

Status ReadByKind(const json::object& object, Fact* fact) {
  switch (fact->kind) {
    case Kind::kJob:
      return ReadJob(object, fact);
    case Kind::kPlaced: {
      TRY_ASSIGN(fact->incarnation, GetSmall(object, "incarnation"));
      TRY_ASSIGN(fact->instance, GetString(object, "instance"));
      return Status::Ok();
    }
    case Kind::kLeased:
      return ReadLease(object, fact);
    case Kind::kGeneration: {
      fact->restart = GetBoolOr(object, "restart", false);
      TRY_ASSIGN(fact->generation, GetInt(object, "generation"));
      TRY_ASSIGN(fact->body, GetObject(object, "body"));
      return Status::Ok();
    }
    case Kind::kEnded:
      return ReadEnd(object, fact);
    case Kind::kResult: {
      TRY_ASSIGN(fact->body, GetObject(object, "body"));
      return Status::Ok();
    }
    case Kind::kVerdict: {
      TRY_ASSIGN(const json::object verdict, GetObject(object, "verdict"));
      TRY_ASSIGN(fact->verdict, VerdictFromJson(verdict));
      return Status::Ok();
    }
    case Kind::kRestart: {
      TRY_ASSIGN(const std::string scope, GetString(object, "scope"));
      if (scope != "role" && scope != "job") return InvalidArgument("field 'scope' is unknown");
      fact->scope = scope == "job" ? job::RestartScope::kJob : job::RestartScope::kRole;
      fact->due = std::chrono::milliseconds(GetIntOr(object, "due", 0));
      fact->stolen = GetBoolOr(object, "stolen", false);
      return Status::Ok();
    }
    case Kind::kScale:
    case Kind::kResumed: {
      TRY_ASSIGN(fact->replicas, GetSmall(object, "replicas"));
      return Status::Ok();
    }
    case Kind::kUnplaced:
    case Kind::kDraining:
      fact->restart = GetBoolOr(object, "restart", false);
      fact->due = std::chrono::milliseconds(GetIntOr(object, "due", 0));
      return Status::Ok();
    case Kind::kStalled: {
      fact->counted = GetBoolOr(object, "counted", false);
      TRY_ASSIGN(fact->body, GetObject(object, "body"));
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
  return InvalidArgument("'" + std::string(name) + "' is no kind of fact");
}

}  // namespace

std::string FactToText(const Fact& fact) {
  json::object object{{"seq", fact.seq}, {"ms", fact.at.count()}, {"at", fact.wall}};
  for (const auto& [kind, text] : kKinds) {
    if (kind == fact.kind) object["fact"] = text;
  }
  if (IsOfTask(fact.kind)) {
    object["task"] = fact.task;
    object["attempt"] = fact.attempt;
  }
  if (fact.kind == Kind::kJob) PutJob(fact, &object);
  if (fact.kind == Kind::kPlaced) {
    object["incarnation"] = fact.incarnation;
    object["instance"] = fact.instance;
  }
  if (!fact.node.empty()) object["node"] = fact.node;
  if (fact.kind == Kind::kLeased) PutLease(fact, &object);
  if (fact.kind == Kind::kGeneration) object["generation"] = fact.generation;
  if (fact.kind == Kind::kGeneration || fact.kind == Kind::kResult || fact.kind == Kind::kStalled) {
    object["body"] = fact.body;
  }
  if (fact.kind == Kind::kStalled && fact.counted) object["counted"] = true;
  if (fact.kind == Kind::kEnded) PutEnd(fact, &object);
  if (fact.kind == Kind::kScale || fact.kind == Kind::kResumed) object["replicas"] = fact.replicas;
  const bool may_restart = fact.kind == Kind::kGeneration || fact.kind == Kind::kDraining ||
                           fact.kind == Kind::kUnplaced;
  if (may_restart && fact.restart) object["restart"] = true;
  if (fact.kind == Kind::kRestart) {
    object["scope"] = fact.scope == job::RestartScope::kJob ? "job" : "role";
    object["due"] = fact.due.count();
    if (fact.stolen) object["stolen"] = true;
  }
  if (fact.kind == Kind::kDraining && fact.due.count() != 0) object["due"] = fact.due.count();
  if (fact.kind == Kind::kVerdict) object["verdict"] = VerdictToJson(fact.verdict);
  if (!fact.text.empty()) object["text"] = fact.text;
  return ToText(object);
}

Result<Fact> FactFromText(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  Fact fact;
  TRY_ASSIGN(const std::string kind, GetString(object, "fact"));
  TRY_ASSIGN(fact.kind, ParseKind(kind));
  TRY_ASSIGN(fact.seq, GetInt(object, "seq"));
  TRY_ASSIGN(const int64_t at, GetInt(object, "ms"));
  fact.at = std::chrono::milliseconds(at);
  fact.wall = GetStringOr(object, "at", "");
  fact.text = GetStringOr(object, "text", "");
  fact.node = GetStringOr(object, "node", "");
  if (IsOfTask(fact.kind)) {
    TRY_ASSIGN(fact.task, GetSmall(object, "task"));
    TRY_ASSIGN(fact.attempt, GetSmall(object, "attempt"));
  }
  TRY(ReadByKind(object, &fact));
  return fact;
}

int64_t ResumedAfter(const std::vector<Fact>& facts) {
  int64_t after = 0;
  for (const Fact& fact : facts) {
    if (fact.kind == Fact::Kind::kResumed) after = fact.seq - 1;
  }
  return after;
}

}  // namespace shoal::rendezvous
