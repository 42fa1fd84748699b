#include "rendezvous/protocol/job_event.h"

#include <algorithm>
#include <utility>

namespace shoal::rendezvous {
namespace {

// Prefixes of the notes that refuse a request.
constexpr std::string_view kNotScaled = "not scaled: ";
constexpr std::string_view kNotSuspended = "not suspended: ";

constexpr std::pair<JobEvent::Type, std::string_view> kEventTypes[] = {
    {JobEvent::Type::kJob, "job"},
    {JobEvent::Type::kTask, "task"},
    {JobEvent::Type::kGeneration, "generation"},
    {JobEvent::Type::kProgress, "progress"},
    {JobEvent::Type::kResult, "result"},
    {JobEvent::Type::kProgram, "program"},
    {JobEvent::Type::kUsage, "usage"},
    {JobEvent::Type::kScaled, "scaled"},
    {JobEvent::Type::kExcluded, "excluded"},
    {JobEvent::Type::kStalled, "stalled"},
    {JobEvent::Type::kMoving, "moving"},
    {JobEvent::Type::kNote, "note"},
    {JobEvent::Type::kVerdict, "verdict"},
};

Result<JobEvent::Type> ParseEventType(std::string_view name) {
  for (const auto& [type, text] : kEventTypes) {
    if (text == name) return type;
  }
  return InvalidArgument("'" + std::string(name) + "' is not a type of event");
}

bool IsOfTask(JobEvent::Type type) {
  switch (type) {
    case JobEvent::Type::kTask:
    case JobEvent::Type::kProgress:
    case JobEvent::Type::kResult:
    case JobEvent::Type::kProgram:
    case JobEvent::Type::kUsage:
      return true;
    default:
      return false;
  }
}

json::object ObjectOr(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  return value != nullptr && value->is_object() ? value->get_object() : json::object();
}

Status ReadState(const json::object& object, job::TaskState* state) {
  TRY_ASSIGN(const std::string name, GetString(object, "state"));
  const auto parsed = job::ParseTaskState(name);
  if (!parsed) return InvalidArgument("'" + name + "' is not a state of a task");
  *state = *parsed;
  return Status::Ok();
}

Status ReadState(const json::object& object, job::JobState* state) {
  TRY_ASSIGN(const std::string name, GetString(object, "state"));
  const auto parsed = job::ParseJobState(name);
  if (!parsed) return InvalidArgument("'" + name + "' is not a state of a job");
  *state = *parsed;
  return Status::Ok();
}

Status ReadEnd(const json::object& object, std::optional<job::TaskEnd>* end) {
  const json::value* value = object.if_contains("end");
  if (value == nullptr || value->is_null()) return Status::Ok();
  if (!value->is_object()) return InvalidArgument("field 'end': expected an object");
  TRY_ASSIGN(*end, job::TaskEndFromJson(value->get_object()));
  return Status::Ok();
}

Result<TaskResult> TaskResultFromJson(const json::value& value) {
  if (!value.is_object()) return InvalidArgument("field 'tasks': expected objects");
  const json::object& object = value.get_object();
  TaskResult task;
  TRY_ASSIGN(task.role, GetString(object, "role"));
  TRY_ASSIGN(const int64_t index, GetInt(object, "index"));
  task.index = static_cast<int>(index);
  task.attempts = static_cast<int>(GetIntOr(object, "attempts", 0));
  TRY(ReadEnd(object, &task.end));
  return task;
}

}  // namespace

Continuation ContinuationOf(const Verdict& verdict) {
  if (verdict.state != job::JobState::kSuspended) return Continuation::kNone;
  return verdict.reason == kContinuesInNextAllocation ? Continuation::kNextAllocation
                                                      : Continuation::kOnResume;
}

std::string ScaleRefusalText(std::string_view role, std::string_view why) {
  return std::string(kNotScaled) + std::string(role) + ": " + std::string(why);
}

std::string SuspendRefusalText(std::string_view why) {
  return std::string(kNotSuspended) + std::string(why);
}

RequestRefusal RefusalOf(const JobEvent& event, std::string_view role) {
  if (event.type != JobEvent::Type::kNote) return RequestRefusal::kNone;
  if (event.text.starts_with(kNotSuspended)) return RequestRefusal::kSuspend;
  const bool scale = !role.empty() && event.text.starts_with(ScaleRefusalText(role, ""));
  return scale ? RequestRefusal::kScale : RequestRefusal::kNone;
}

bool EndedWell(const Verdict& verdict, const std::vector<std::string>& roles) {
  int tasks = 0;
  for (const TaskResult& task : verdict.tasks) {
    if (std::find(roles.begin(), roles.end(), task.role) == roles.end()) continue;
    ++tasks;
    if (!task.end || !task.end->ok()) return false;
  }
  return tasks > 0;
}

json::object VerdictToJson(const Verdict& verdict) {
  json::array tasks;
  for (const TaskResult& task : verdict.tasks) {
    json::object object{{"role", task.role}, {"index", task.index}, {"attempts", task.attempts}};
    if (task.end) {
      object["end"] = job::ToJson(*task.end);
      object["text"] = job::Describe(*task.end);
    }
    tasks.push_back(std::move(object));
  }
  return {{"state", job::NameOf(verdict.state)},
          {"reason", verdict.reason},
          {"gathered", verdict.gathered},
          {"tasks", std::move(tasks)}};
}

Result<Verdict> VerdictFromJson(const json::object& object) {
  Verdict verdict;
  TRY(ReadState(object, &verdict.state));
  if (!job::IsFinal(verdict.state) && verdict.state != job::JobState::kSuspended) {
    return InvalidArgument("a verdict's state must be final, or suspended");
  }
  TRY_ASSIGN(verdict.reason, GetString(object, "reason"));
  verdict.gathered = GetBoolOr(object, "gathered", true);
  const json::value* tasks = object.if_contains("tasks");
  if (tasks == nullptr || !tasks->is_array()) {
    return InvalidArgument("field 'tasks': expected an array");
  }
  for (const json::value& value : tasks->get_array()) {
    TRY_ASSIGN(TaskResult task, TaskResultFromJson(value));
    verdict.tasks.push_back(std::move(task));
  }
  return verdict;
}

std::string_view EventTypeName(JobEvent::Type type) {
  for (const auto& [value, text] : kEventTypes) {
    if (value == type) return text;
  }
  return "?";
}

json::object EventToJson(const JobEvent& event) {
  json::object object{{"event", EventTypeName(event.type)}, {"seq", event.seq}, {"at", event.at}};
  if (IsOfTask(event.type)) {
    object["role"] = event.role;
    object["index"] = event.index;
    object["attempt"] = event.attempt;
  }
  switch (event.type) {
    case JobEvent::Type::kJob:
      object["state"] = job::NameOf(event.job_state);
      break;
    case JobEvent::Type::kTask:
      object["state"] = job::NameOf(event.task_state);
      if (event.will_restart) object["will_restart"] = true;
      if (!event.end) break;
      object["end"] = job::ToJson(*event.end);
      object["last_line"] = event.last_line;
      object["will_restart"] = event.will_restart;
      break;
    case JobEvent::Type::kGeneration:
      object["generation"] = event.generation;
      object["body"] = event.body;
      break;
    case JobEvent::Type::kProgress:
    case JobEvent::Type::kResult:
    case JobEvent::Type::kProgram:
      object["body"] = event.body;
      break;
    case JobEvent::Type::kUsage:
      object["rss_bytes"] = event.rss_bytes;
      object["cpu_seconds"] = event.cpu_seconds;
      break;
    case JobEvent::Type::kScaled:
    case JobEvent::Type::kExcluded:
      object["role"] = event.role;
      object["body"] = event.body;
      break;
    case JobEvent::Type::kStalled:
      object["body"] = event.body;
      break;
    case JobEvent::Type::kMoving:
    case JobEvent::Type::kNote:
      break;
    case JobEvent::Type::kVerdict:
      object["verdict"] = VerdictToJson(event.verdict);
      break;
  }
  if (!event.text.empty()) object["text"] = event.text;
  return object;
}

Result<JobEvent> EventFromJson(const json::object& object) {
  JobEvent event;
  TRY_ASSIGN(const std::string type, GetString(object, "event"));
  TRY_ASSIGN(event.type, ParseEventType(type));
  TRY_ASSIGN(event.seq, GetInt(object, "seq"));
  event.at = GetStringOr(object, "at", "");
  event.text = GetStringOr(object, "text", "");
  event.role = GetStringOr(object, "role", "");
  event.index = static_cast<int>(GetIntOr(object, "index", 0));
  event.attempt = static_cast<int>(GetIntOr(object, "attempt", 0));
  event.generation = GetIntOr(object, "generation", 0);
  event.last_line = GetStringOr(object, "last_line", "");
  event.will_restart = GetBoolOr(object, "will_restart", false);
  event.rss_bytes = GetIntOr(object, "rss_bytes", 0);
  event.cpu_seconds = GetDoubleOr(object, "cpu_seconds", 0);
  event.body = ObjectOr(object, "body");
  TRY(ReadEnd(object, &event.end));
  if (event.type == JobEvent::Type::kTask) TRY(ReadState(object, &event.task_state));
  if (event.type == JobEvent::Type::kJob) TRY(ReadState(object, &event.job_state));
  if (event.type == JobEvent::Type::kVerdict) {
    TRY_ASSIGN(event.verdict, VerdictFromJson(ObjectOr(object, "verdict")));
  }
  return event;
}

}  // namespace shoal::rendezvous
