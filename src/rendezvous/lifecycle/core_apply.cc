// How a record changes the state: the same for a record just made and for one read from the
// journal.
#include <algorithm>

#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

Status CoordinatorCore::Restore(const std::vector<JournalRecord>& records) {
  for (const JournalRecord& record : records) {
    if (record.seq != state_.seq + 1) {
      return DataLoss("the journal jumps from fact " + std::to_string(state_.seq) + " to " +
                      std::to_string(record.seq));
    }
    state_.seq = record.seq;
    state_.now = std::max(state_.now, record.at);
    TRY(Apply(record).With("fact " + std::to_string(record.seq)));
  }
  return Status::Ok();
}

Status CoordinatorCore::Apply(const JournalRecord& record) {
  using RecordKind = JournalRecord::Kind;
  switch (record.kind) {
    case RecordKind::kJob:
    case RecordKind::kGeneration:
    case RecordKind::kVerdict:
      state_.rescan = true;
      ApplyToJob(record);
      return Status::Ok();
    case RecordKind::kResumed:
      state_.rescan = true;
      ApplyResumed(record);
      return Status::Ok();
    case RecordKind::kStalled:
    case RecordKind::kMoving:
      state_.rescan = true;
      stall_.Apply(record);
      policy_.ApplyStall(record);
      return Status::Ok();
    default:
      stall_.ApplyActivity(record);
      return ApplyToTask(record);
  }
}

void CoordinatorCore::ApplyToJob(const JournalRecord& record) {
  if (record.kind == JournalRecord::Kind::kJob) {
    state_.job_state = record.state;
    ++state_.ends_version;  // whether the job is ending is part of the description
    state_.stop = std::max(state_.stop, record.stop);
    if (record.decided) state_.decided = record.decided;
    state_.gathered = state_.gathered && record.gathered;
    if (record.stop != StopMode::kNone) state_.stop_reason = record.text;
  } else if (record.kind == JournalRecord::Kind::kGeneration) {
    if (state_.gathering || (record.restart && group_.IncludesAll()))
      state_.tasks.RecordInitialMembers();
    state_.generation = record.generation;
    state_.gathering = false;
    if (state_.generation == 1) state_.running_since = record.at;
    group_.ApplyGeneration(record);
  } else {
    state_.verdict = record.verdict;
    state_.job_state = record.verdict.state;
  }
}

Status CoordinatorCore::ApplyToTask(const JournalRecord& record) {
  if (record.task < 0 || record.task >= state_.tasks.size()) {
    return DataLoss("task number " + std::to_string(record.task) + " is not of this job");
  }
  if (record.kind == JournalRecord::Kind::kRestart) {
    state_.rescan = true;
    policy_.ApplyRestart(record);
    group_.ApplyRestart(record);
    return Status::Ok();
  }
  if (record.kind == JournalRecord::Kind::kScale) {
    state_.rescan = true;
    scaling_.ApplyScale(record);
    return Status::Ok();
  }
  if (record.kind == JournalRecord::Kind::kExcluded) return exclusions_.Apply(record);
  Task& task = state_.tasks[record.task];
  const bool well = task.ended_well();
  const bool described = state_.tasks.IsDescribed(task);
  state_.tasks.UpdateCounts(task, -1);
  const Status status = ChangeTask(record, &task);
  state_.tasks.UpdateCounts(task, 1);
  if (well != task.ended_well() || described != state_.tasks.IsDescribed(task))
    ++state_.ends_version;
  if (!state_.rescan) state_.touched.push_back(record.task);
  return status;
}

Status CoordinatorCore::ChangeTask(const JournalRecord& record, Task* changed) {
  Task& task = *changed;
  switch (record.kind) {
    case JournalRecord::Kind::kLauncherAssigned:
      task.launcher = AssignedLauncher{};
      task.launcher->incarnation = record.incarnation;
      task.launcher->instance = record.instance;
      task.launcher->node = record.node;
      return Status::Ok();
    case JournalRecord::Kind::kLeased:
      return ApplyLease(record, &task);
    case JournalRecord::Kind::kLauncherLost:
      task.launcher.reset();
      task.unassigned_since = record.at;
      task.state = job::TaskState::kCreated;
      return Status::Ok();
    case JournalRecord::Kind::kStarted:
      ApplyStart(record, &task);
      return Status::Ok();
    case JournalRecord::Kind::kDraining:
      task.state = job::TaskState::kDraining;
      task.drain.kill_at =
          record.due.count() > 0 ? record.due : record.at + state_.job.limits.stop_grace;
      task.drain.last_signal = StopSignal::kTerm;
      task.drain.purpose = record.restart ? DrainPurpose::kRestart : DrainPurpose::kEnd;
      return Status::Ok();
    case JournalRecord::Kind::kReady:
      if (task.running()) task.program = ProgramState::kServing;
      return Status::Ok();
    case JournalRecord::Kind::kEnded:
      if (!record.end) return DataLoss("an end without how");
      ApplyEnd(record, &task);
      return Status::Ok();
    case JournalRecord::Kind::kResult:
      ++task.results;
      return Status::Ok();
    default:
      return Status::Ok();
  }
}

Status CoordinatorCore::ApplyLease(const JournalRecord& record, Task* task) {
  if (!task->launcher) return DataLoss("a lease without a launcher");
  task->launcher->leased = true;
  state_.last_leased = record.at;
  if (!state_.gathering && task->host.empty() && state_.job.roles[task->role].elastic() &&
      state_.job.roles[task->role].restart.scope != job::RestartScope::kTask) {
    group_.SetMembershipChanged(task->role, true);
  }
  task->host = record.host;
  task->ports = record.ports;
  if (!task->running() && !task->final) task->state = job::TaskState::kJoined;
  return Status::Ok();
}

void CoordinatorCore::ApplyStart(const JournalRecord& record, Task* task) {
  task->last_activity = record.at;
  task->inspection.asked = false;
  task->inspection.diagnostics.reset();
  task->program = state_.job.roles[task->role].ready.by == job::ReadyBy::kStart
                      ? ProgramState::kServing
                      : ProgramState::kRunning;
  task->drain.purpose = DrainPurpose::kNone;
  task->results = 0;
  task->attempt = record.attempt;
  task->attempts = record.attempt + 1;
  task->state = job::TaskState::kRunning;
}

void CoordinatorCore::ApplyEnd(const JournalRecord& record, Task* task) {
  const bool ran = std::exchange(task->program, ProgramState::kNone) != ProgramState::kNone;
  task->end = record.end;
  task->last_line = record.last_line;
  task->ended_seq = record.seq;
  task->treatment = state_.suspending() ? EndTreatment::kSuspended
                    : record.ignored    ? EndTreatment::kIgnored
                    : record.exhausted  ? EndTreatment::kRestartsExhausted
                                        : EndTreatment::kCounts;
  task->drain.purpose = DrainPurpose::kNone;
  task->why_ended = record.end->ok() ? std::string() : record.text;
  policy_.ApplyEnd(record, task, ran);
  if (!record.restart) {
    task->final = true;
    task->state = job::TaskState::kEnded;
    const bool leaves = task->scaled_down || !task->ended_well();
    if (leaves && state_.job.roles[task->role].elastic())
      group_.SetMembershipChanged(task->role, true);
    if (record.end->kind == job::EndKind::kLost) task->launcher.reset();
    return;
  }
  task->attempt = record.attempt + 1;
  task->due = record.due;
  task->state = task->launcher ? job::TaskState::kJoined : job::TaskState::kCreated;
}

void CoordinatorCore::ApplyResumed(const JournalRecord& record) {
  state_.resumes = record.replicas;
  state_.verdict.reset();
  state_.decided.reset();
  policy_.ApplyResumed();
  group_.ApplyResumed();
  stall_.ApplyResumed();
  state_.stop = StopMode::kNone;
  state_.stop_reason.clear();
  state_.job_state = job::JobState::kStarting;
  state_.gathering = true;
  state_.gather_from = record.at;
  ++state_.ends_version;
  state_.tasks.ClearCounts();
  for (Task& task : state_.tasks) {
    const bool goes_on = !task.scaled_down && RunsAgainAfterResume(task);
    task.launcher.reset();
    task.released = false;
    task.unassigned_since = record.at;
    if (goes_on) {
      task.final = false;
      task.treatment = EndTreatment::kCounts;
      task.drain.purpose = DrainPurpose::kNone;
      task.attempt = task.attempts;
      task.due = record.at;
      task.end.reset();
      task.host.clear();
      task.ports.clear();
      task.state = job::TaskState::kCreated;
    }
    state_.tasks.UpdateCounts(task, 1);
  }
}

// Tasks that the suspension ended go on. So do tasks that had ended well before, if others of their
// scope may wait for them (as after a death, GroupRestart::ApplyRestart).
bool CoordinatorCore::RunsAgainAfterResume(const Task& task) const {
  if (!task.final || task.treatment == EndTreatment::kSuspended) return true;
  if (!task.ended_well()) return false;
  const bool whole = std::any_of(
      state_.job.roles.begin(), state_.job.roles.end(),
      [](const job::Role& role) { return role.restart.scope == job::RestartScope::kJob; });
  return whole || state_.job.roles[task.role].restart.scope == job::RestartScope::kRole;
}

}  // namespace shoal::rendezvous
