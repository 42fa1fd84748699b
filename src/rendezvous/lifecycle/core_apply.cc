// Facts: the only place where what they tell changes the state, live and from the journal.
#include <algorithm>

#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

Status CoordinatorCore::Restore(const std::vector<JournalRecord>& records) {
  for (const JournalRecord& record : records) {
    if (record.seq != seq_ + 1) {
      return DataLoss("the journal jumps from fact " + std::to_string(seq_) + " to " +
                      std::to_string(record.seq));
    }
    seq_ = record.seq;
    now_ = std::max(now_, record.at);
    TRY(Apply(record).With("fact " + std::to_string(record.seq)));
  }
  return Status::Ok();
}

JournalRecord CoordinatorCore::RecordFor(JournalRecord::Kind kind, int task) const {
  JournalRecord record;
  record.kind = kind;
  record.task = task;
  if (task >= 0) record.attempt = tasks_[static_cast<size_t>(task)].attempt;
  return record;
}

int64_t CoordinatorCore::Record(JournalRecord record) {
  record.seq = ++seq_;
  record.at = now_;
  const Status applied = Apply(record);
  SHOAL_CHECK(applied.ok());
  Emit(Action::Kind::kRecord).record = std::move(record);
  return seq_;
}

Action& CoordinatorCore::Emit(Action::Kind kind, int task) {
  Action action;
  action.kind = kind;
  // What is done about a stall is done when the diagnostics of it is stored.
  if (kind == Action::Kind::kDrain || kind == Action::Kind::kKill) action.after = stall_seq_;
  action.task = task;
  if (task >= 0) action.member = MemberOf(task);
  actions_.push_back(std::move(action));
  return actions_.back();
}

Status CoordinatorCore::Apply(const JournalRecord& record) {
  const bool of_one =
      record.kind != JournalRecord::Kind::kJob && record.kind != JournalRecord::Kind::kGeneration &&
      record.kind != JournalRecord::Kind::kVerdict &&
      record.kind != JournalRecord::Kind::kRestart && record.kind != JournalRecord::Kind::kScale &&
      record.kind != JournalRecord::Kind::kStalled && record.kind != JournalRecord::Kind::kMoving &&
      record.kind != JournalRecord::Kind::kResumed;
  rescan_ = rescan_ || !of_one;
  switch (record.kind) {
    case JournalRecord::Kind::kJob:
      job_state_ = record.state;
      ++ends_version_;  // whether the job is ending is part of the description
      stop_ = std::max(stop_, record.stop);
      if (record.decided) decided_ = record.decided;
      gathered_ = gathered_ && record.gathered;
      if (record.stop != StopMode::kNone) stop_reason_ = record.text;
      return Status::Ok();
    case JournalRecord::Kind::kGeneration:
      generation_ = record.generation;
      gathering_ = false;
      std::fill(membership_changed_.begin(), membership_changed_.end(), false);
      if (generation_ == 1) running_since_ = record.at;
      if (record.restart) {
        group_restart_due_.reset();
        std::fill(restarting_group_.begin(), restarting_group_.end(), false);
      }
      return Status::Ok();
    case JournalRecord::Kind::kResumed:
      ApplyResumed(record);
      return Status::Ok();
    case JournalRecord::Kind::kVerdict:
      verdict_ = record.verdict;
      job_state_ = record.verdict.state;
      return Status::Ok();
    case JournalRecord::Kind::kStalled:
    case JournalRecord::Kind::kMoving:
      stalled_ = record.kind == JournalRecord::Kind::kStalled;
      stalled_at_ = record.at;
      if (stalled_) stall_seq_ = record.seq;
      if (record.counted) ++stall_restarts_, ++restarts_;
      return Status::Ok();
    default:
      last_activity_ = std::max(last_activity_, record.at);
      return ApplyToTask(record);
  }
}

Status CoordinatorCore::ApplyToTask(const JournalRecord& record) {
  if (record.task < 0 || record.task >= task_count()) {
    return DataLoss("task number " + std::to_string(record.task) + " is not of this job");
  }
  if (record.kind == JournalRecord::Kind::kRestart) {
    ApplyRestart(record);
    return Status::Ok();
  }
  if (record.kind == JournalRecord::Kind::kScale) {
    ApplyScale(record);
    return Status::Ok();
  }
  Task& task = tasks_[static_cast<size_t>(record.task)];
  if (record.kind == JournalRecord::Kind::kExcluded) {
    if (record.node.empty()) return DataLoss("an exclusion without a host");
    excluded_[task.role].emplace(record.node, record.text);
    return Status::Ok();
  }
  const bool well = EndedWell(task);
  const bool described = IsDescribed(task);
  UpdateCounts(task, -1);
  const Status status = ChangeTask(record, &task);
  UpdateCounts(task, 1);
  if (well != EndedWell(task) || described != IsDescribed(task)) ++ends_version_;
  if (!rescan_) touched_.push_back(record.task);
  return status;
}

void CoordinatorCore::UpdateCounts(const Task& task, int by) {
  if (task.scaled_down && task.final) return;
  RoleCount& count = counts_[task.role];
  count.tasks += by;
  const bool leased = task.launcher && task.launcher->leased;
  if (EndedWell(task) || (leased && !task.final)) count.there += by;
  const bool elastic = job_.roles[task.role].elastic();
  if (elastic && task.host.empty() && !task.final) count.missing += by;
  if (task.active) count.active += by;
  if (task.active && task.ready) count.ready += by;
  if (leased) count.leased += by;
  if (task.final) count.final += by;
  if (EndedWell(task)) count.well += by;
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
      if (!task.launcher) return DataLoss("a lease without a launcher");
      task.launcher->leased = true;
      last_leased_ = record.at;
      if (!gathering_ && task.host.empty() && job_.roles[task.role].elastic() &&
          job_.roles[task.role].restart.scope != job::RestartScope::kTask) {
        membership_changed_[task.role] = true;
      }
      task.host = record.host;
      task.ports = record.ports;
      if (!task.active && !task.final) task.state = job::TaskState::kJoined;
      return Status::Ok();
    case JournalRecord::Kind::kLauncherLost:
      task.launcher.reset();
      task.unassigned_since = record.at;
      task.state = job::TaskState::kCreated;
      return Status::Ok();
    case JournalRecord::Kind::kStarted:
      task.active = true;
      task.last_activity = record.at;
      task.asked = false;
      task.diagnostics.reset();
      task.ready = job_.roles[task.role].ready.by == job::ReadyBy::kStart;
      task.stopping_for_restart = false;
      task.results = 0;
      task.attempt = record.attempt;
      task.attempts = record.attempt + 1;
      task.state = job::TaskState::kRunning;
      return Status::Ok();
    case JournalRecord::Kind::kDraining:
      task.state = job::TaskState::kDraining;
      task.kill_at = record.due.count() > 0 ? record.due : record.at + job_.limits.stop_grace;
      task.killed = false;
      task.stopping_for_restart = record.restart;
      return Status::Ok();
    case JournalRecord::Kind::kReady:
      task.ready = true;
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

void CoordinatorCore::ApplyEnd(const JournalRecord& record, Task* task) {
  const bool ran = std::exchange(task->active, false);
  task->end = record.end;
  task->last_line = record.last_line;
  task->ended_seq = record.seq;
  task->ignored = record.ignored;
  task->exhausted = record.exhausted;
  task->suspended = suspending();
  restarted_ = restarted_ || record.restart;
  task->stopping_for_restart = false;
  task->why_ended = record.end->ok() ? std::string() : record.text;
  const auto kind = job::ClassifyEnd(*record.end, task->history.ooms);
  const bool death = kind == job::EndClass::kTransient || kind == job::EndClass::kPermanent;
  // Who is not started again is missed for good: what others die of is theirs, and counts.
  if (ran && death && record.restart && !record.consequence && !record.port_conflict) {
    first_death_ = job::TaskFailure{static_cast<int>(generation_), job_.roles[task->role].name,
                                    task->index, record.at};
  }
  if (record.end->kind == job::EndKind::kOutOfMemory) ++task->history.ooms;
  if (record.counted) {
    ++restarts_;
    const job::RestartScope scope = job_.roles[task->role].restart.scope;
    ++(scope == job::RestartScope::kJob    ? job_restarts_
       : scope == job::RestartScope::kRole ? role_restarts_[task->role]
                                           : task->history.restarts);
  }
  if (!record.restart) {
    task->final = true;
    task->state = job::TaskState::kEnded;
    const bool leaves = task->scaled_down || !EndedWell(*task);
    if (leaves && job_.roles[task->role].elastic()) membership_changed_[task->role] = true;
    if (record.end->kind == job::EndKind::kLost) task->launcher.reset();
    return;
  }
  task->attempt = record.attempt + 1;
  task->due = record.due;
  task->state = task->launcher ? job::TaskState::kJoined : job::TaskState::kCreated;
}

// All of the scope will be started again, who has ended well or was stopped included: the others'
// program may need it. Who has failed for good has not kept the job from going on, and stays out.
void CoordinatorCore::ApplyRestart(const JournalRecord& record) {
  const size_t role = tasks_[static_cast<size_t>(record.task)].role;
  restarted_ = true;
  if (record.port_conflict) {
    ++port_conflicts_;
    tasks_[static_cast<size_t>(record.task)].unassigned_since = record.at;  // it is to lease again
  }
  group_restart_due_ = std::max(group_restart_due_.value_or(record.due), record.due);
  for (Task& task : tasks_) {
    if (!InScope(task, record.scope, role)) continue;
    restarting_group_[task.role] = true;
    membership_changed_[task.role] = false;
    const bool revived = task.final && !task.scaled_down && task.end &&
                         (EndedWell(task) || task.end->kind == job::EndKind::kCancelled);
    if (!revived) continue;
    ++ends_version_;
    UpdateCounts(task, -1);
    task.final = false;
    task.released = false;
    ++task.attempt;
    task.due = record.due;
    task.unassigned_since = record.at;
    task.state = !task.launcher          ? job::TaskState::kCreated
                 : task.launcher->leased ? job::TaskState::kJoined
                                         : job::TaskState::kCreated;
    UpdateCounts(task, 1);
  }
}

}  // namespace shoal::rendezvous
