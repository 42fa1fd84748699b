#include "controller/store/job_record.h"

#include <fmt/format.h>

#include <utility>

#include "job/spec/json.h"

namespace shoal::controller {
namespace {

constexpr WallTime kNever{};

Result<JobState> ReadState(const std::string& name) {
  const std::optional<JobState> state = job::ParseJobState(name);
  if (!state) return InvalidArgument("\"" + name + "\" is not a job state");
  return *state;
}

Status ApplySubmitted(const Event& event, JobRecord* record) {
  TRY_ASSIGN(record->name, GetString(event.body, "name"));
  TRY_ASSIGN(record->engine, GetString(event.body, "engine"));
  const json::value* job = event.body.if_contains("job");
  const json::value* owner = event.body.if_contains("owner");
  if (job == nullptr || !job->is_object()) return InvalidArgument("job: missing");
  if (owner == nullptr || !owner->is_object()) return InvalidArgument("owner: missing");
  TRY_ASSIGN(record->owner, ParseProcessIdentity(owner->get_object()));
  record->job = job->get_object();
  record->team = GetStringOr(event.body, "team", "");
  record->user = GetStringOr(event.body, "user", "");
  if (const json::value* labels = event.body.if_contains("labels");
      labels != nullptr && labels->is_object()) {
    for (const auto& field : labels->get_object()) {
      TRY_ASSIGN(record->labels[field.key()], GetString(labels->get_object(), field.key()));
    }
  }
  record->submitted = event.time;
  record->state = JobState::kPending;
  return Status::Ok();
}

Status ApplyState(const Event& event, JobState to, JobRecord* record) {
  if (record->state != to && !job::MayFollow(record->state, to)) {
    return FailedPrecondition(fmt::format("job {} is {} and cannot become {}", record->id,
                                          job::NameOf(record->state), job::NameOf(to)));
  }
  if (to == JobState::kRunning && record->started == kNever) record->started = event.time;
  if (to == JobState::kSuspended) record->owner = {};
  if (job::IsFinal(to)) {
    record->ended = event.time;
    record->owner = {};
    if (const json::value* result = event.body.if_contains("result");
        result != nullptr && result->is_object()) {
      record->result = result->get_object();
    }
  }
  record->state = to;
  record->reason = GetStringOr(event.body, "reason", "");
  return Status::Ok();
}

Status ApplyResized(const Event& event, JobRecord* record) {
  TRY_ASSIGN(const std::string role, GetString(event.body, "role"));
  TRY_ASSIGN(const int64_t replicas, GetInt(event.body, "replicas"));
  if (record->state != JobState::kPending)
    return FailedPrecondition("job " + record->id + " is not queued any more");
  TRY_ASSIGN(job::Job job, job::FromJson(record->job));
  for (job::Role& one : job.roles) {
    if (one.name != role) continue;
    if (replicas > job::kMaxTasks) break;
    const int before = std::exchange(one.replicas, static_cast<int>(replicas));
    one.min_replicas = one.min_replicas.value_or(before);  // the original bounds remain
    one.max_replicas = one.max_replicas.value_or(before);  // likewise
    record->job = job::ToJson(job);
    return Status::Ok();
  }
  return InvalidArgument("role: there is none with this name and size");
}

}  // namespace

json::object ToJson(const ProcessIdentity& process) {
  return {{"pid", process.pid},
          {"start_ticks", process.start_ticks},
          {"boot_id", process.boot_id},
          {"pid_namespace", process.pid_namespace}};
}

Result<ProcessIdentity> ParseProcessIdentity(const json::object& object) {
  ProcessIdentity process;
  TRY_ASSIGN(process.pid, GetInt(object, "pid"));
  TRY_ASSIGN(process.start_ticks, GetInt(object, "start_ticks"));
  TRY_ASSIGN(process.boot_id, GetString(object, "boot_id"));
  process.pid_namespace = GetIntOr(object, "pid_namespace", 0);
  return process;
}

json::object ToJson(const TaskRecord& task) {
  json::object object{{"role", task.role},
                      {"index", task.index},
                      {"attempt", task.attempt},
                      {"state", job::NameOf(task.state)}};
  if (task.end) object["end"] = job::ToJson(*task.end);
  if (task.will_restart) object["will_restart"] = true;
  if (!task.last_line.empty()) object["last_line"] = task.last_line;
  return object;
}

Result<TaskRecord> ParseTask(const json::object& object) {
  TaskRecord task;
  TRY_ASSIGN(task.role, GetString(object, "role"));
  TRY_ASSIGN(const int64_t index, GetInt(object, "index"));
  TRY_ASSIGN(const int64_t attempt, GetInt(object, "attempt"));
  if (index < 0 || index > INT32_MAX || attempt < 0 || attempt > INT32_MAX)
    return InvalidArgument("a task's index or attempt is out of range");
  task.index = static_cast<int>(index);
  task.attempt = static_cast<int>(attempt);
  TRY_ASSIGN(const std::string state, GetString(object, "state"));
  const std::optional<job::TaskState> parsed = job::ParseTaskState(state);
  if (!parsed) return InvalidArgument("\"" + state + "\" is not a task state");
  task.state = *parsed;
  if (const json::value* end = object.if_contains("end"); end != nullptr && end->is_object()) {
    TRY_ASSIGN(task.end, job::TaskEndFromJson(end->get_object()));
  }
  task.will_restart = GetBoolOr(object, "will_restart", false);
  task.last_line = GetStringOr(object, "last_line", "");
  return task;
}

Status ApplyEvent(const Event& event, JobRecord* record) {
  if (event.type == "note" || event.type == "task") {
    if (event.type == "task" && job::IsFinal(record->state))
      return FailedPrecondition("job " + record->id + " has ended");
  } else if (job::IsFinal(record->state)) {
    return FailedPrecondition(
        fmt::format("job {} has ended as {} already", record->id, job::NameOf(record->state)));
  } else if (event.type == "excluded") {
    TRY(GetString(event.body, "host").status());
  } else if (event.type == "stalled" || event.type == "moving") {
    record->reason = GetStringOr(event.body, "reason", "");
  } else if (event.type == "result") {
    const json::value* const result = event.body.if_contains("result");
    if (result == nullptr || !result->is_object()) return InvalidArgument("result: missing");
    record->result = result->get_object();
  } else if (event.type == "resized") {
    TRY(ApplyResized(event, record));
  } else if (event.type == "submitted") {
    TRY(ApplySubmitted(event, record));
  } else if (event.type == "owner") {
    TRY_ASSIGN(record->owner, ParseProcessIdentity(event.body));
  } else if (event.type == "ended") {
    TRY_ASSIGN(const std::string name, GetString(event.body, "state"));
    TRY_ASSIGN(const JobState state, ReadState(name));
    if (!job::IsFinal(state)) return InvalidArgument("a job cannot end as " + name);
    TRY(ApplyState(event, state, record));
  } else {
    TRY_ASSIGN(const JobState state, ReadState(event.type));
    if (job::IsFinal(state)) return InvalidArgument("a final state needs the event \"ended\"");
    TRY(ApplyState(event, state, record));
  }
  record->last_seq = event.seq;
  return Status::Ok();
}

Event StateEvent(WallTime time, JobState state, std::string_view reason) {
  Event event{0, time, std::string(job::NameOf(state)), {}};
  if (!reason.empty()) event.body["reason"] = reason;
  return event;
}

Event EndedEvent(WallTime time, JobState state, std::string_view reason,
                 const json::object& result) {
  Event event{0, time, "ended", {{"state", job::NameOf(state)}, {"reason", reason}}};
  if (!result.empty()) event.body["result"] = result;
  return event;
}

Event TaskEvent(WallTime time, const TaskRecord& task) { return {0, time, "task", ToJson(task)}; }

Event NoteEvent(WallTime time, std::string_view text) {
  return {0, time, "note", {{"text", text}}};
}

Event StalledEvent(WallTime time, std::string_view reason, const json::object& evidence) {
  Event event{0, time, "stalled", evidence};
  event.body["reason"] = reason;
  return event;
}

Event MovingEvent(WallTime time) { return {0, time, "moving", {}}; }

Event ScaledNoteEvent(WallTime time, std::string_view text, const std::string& role,
                      int64_t replicas) {
  return {0, time, "note", {{"text", text}, {"role", role}, {"replicas", replicas}}};
}

Event ResultEvent(WallTime time, const json::object& result) {
  return {0, time, "result", {{"result", result}}};
}

Event ExcludedEvent(WallTime time, const std::string& role, const std::string& host,
                    std::string_view reason) {
  return {0, time, "excluded", {{"role", role}, {"host", host}, {"reason", reason}}};
}

Event ResizedEvent(WallTime time, const std::string& role, int replicas) {
  return {0, time, "resized", {{"role", role}, {"replicas", replicas}}};
}

}  // namespace shoal::controller
