// Facts: the only place where what they tell changes the state, live and from the journal.
#include <algorithm>

#include "rendezvous/coordinator_core.h"

namespace shoal::rendezvous {

Status CoordinatorCore::Restore(const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) {
    if (fact.seq != seq_ + 1) {
      return DataLoss("the journal jumps from fact " + std::to_string(seq_) + " to " +
                      std::to_string(fact.seq));
    }
    seq_ = fact.seq;
    now_ = std::max(now_, fact.at);
    TRY(Apply(fact).With("fact " + std::to_string(fact.seq)));
  }
  return Status::Ok();
}

Fact CoordinatorCore::FactOf(Fact::Kind kind, int task) const {
  Fact fact;
  fact.kind = kind;
  fact.task = task;
  if (task >= 0) fact.attempt = tasks_[static_cast<size_t>(task)].attempt;
  return fact;
}

int64_t CoordinatorCore::Record(Fact fact) {
  fact.seq = ++seq_;
  fact.at = now_;
  const Status applied = Apply(fact);
  SHOAL_CHECK(applied.ok());
  Do(Action::Kind::kRecord).fact = std::move(fact);
  return seq_;
}

Action& CoordinatorCore::Do(Action::Kind kind, int task) {
  Action action;
  action.kind = kind;
  // What is done about a stall is done when the evidence of it is stored.
  if (kind == Action::Kind::kDrain || kind == Action::Kind::kKill) action.after = stall_seq_;
  action.task = task;
  if (task >= 0) action.member = MemberOf(task);
  actions_.push_back(std::move(action));
  return actions_.back();
}

Status CoordinatorCore::Apply(const Fact& fact) {
  const bool of_one = fact.kind != Fact::Kind::kJob && fact.kind != Fact::Kind::kGeneration &&
                      fact.kind != Fact::Kind::kVerdict && fact.kind != Fact::Kind::kRestart &&
                      fact.kind != Fact::Kind::kScale && fact.kind != Fact::Kind::kStalled &&
                      fact.kind != Fact::Kind::kMoving && fact.kind != Fact::Kind::kResumed;
  rescan_ = rescan_ || !of_one;
  switch (fact.kind) {
    case Fact::Kind::kJob:
      job_state_ = fact.state;
      ++ends_version_;  // whether the job is ending is part of the description
      stop_ = std::max(stop_, fact.stop);
      if (fact.decided) decided_ = fact.decided;
      gathered_ = gathered_ && fact.gathered;
      if (fact.stop != StopMode::kNone) stop_reason_ = fact.text;
      return Status::Ok();
    case Fact::Kind::kGeneration:
      generation_ = fact.generation;
      gathering_ = false;
      std::fill(roster_changed_.begin(), roster_changed_.end(), false);
      if (generation_ == 1) running_since_ = fact.at;
      if (fact.restart) {
        regroup_due_.reset();
        std::fill(regrouping_.begin(), regrouping_.end(), false);
      }
      return Status::Ok();
    case Fact::Kind::kResumed:
      ApplyResumed(fact);
      return Status::Ok();
    case Fact::Kind::kVerdict:
      verdict_ = fact.verdict;
      job_state_ = fact.verdict.state;
      return Status::Ok();
    case Fact::Kind::kStalled:
    case Fact::Kind::kMoving:
      stalled_ = fact.kind == Fact::Kind::kStalled;
      stalled_at_ = fact.at;
      if (stalled_) stall_seq_ = fact.seq;
      if (fact.counted) ++stall_restarts_, ++restarts_;
      return Status::Ok();
    default:
      moved_ = std::max(moved_, fact.at);
      return ApplyToTask(fact);
  }
}

Status CoordinatorCore::ApplyToTask(const Fact& fact) {
  if (fact.task < 0 || fact.task >= task_count()) {
    return DataLoss("task number " + std::to_string(fact.task) + " is not of this job");
  }
  if (fact.kind == Fact::Kind::kRestart) {
    ApplyRestart(fact);
    return Status::Ok();
  }
  if (fact.kind == Fact::Kind::kScale) {
    ApplyScale(fact);
    return Status::Ok();
  }
  Task& task = tasks_[static_cast<size_t>(fact.task)];
  if (fact.kind == Fact::Kind::kExcluded) {
    if (fact.node.empty()) return DataLoss("an exclusion without a host");
    excluded_[task.role].emplace(fact.node, fact.text);
    return Status::Ok();
  }
  const bool well = EndedWell(task);
  const bool described = IsDescribed(task);
  Count(task, -1);
  const Status status = ChangeTask(fact, &task);
  Count(task, 1);
  if (well != EndedWell(task) || described != IsDescribed(task)) ++ends_version_;
  if (!rescan_) touched_.push_back(fact.task);
  return status;
}

void CoordinatorCore::Count(const Task& task, int by) {
  if (task.retired && task.final) return;
  RoleCount& count = counts_[task.role];
  count.tasks += by;
  const bool leased = task.holder && task.holder->leased;
  if (EndedWell(task) || (leased && !task.final)) count.there += by;
  const bool elastic = job_.roles[task.role].elastic();
  if (elastic && task.host.empty() && !task.final) count.missing += by;
  if (task.active) count.active += by;
  if (task.active && task.ready) count.ready += by;
  if (leased) count.leased += by;
  if (task.final) count.final += by;
  if (EndedWell(task)) count.well += by;
}

Status CoordinatorCore::ChangeTask(const Fact& fact, Task* changed) {
  Task& task = *changed;
  switch (fact.kind) {
    case Fact::Kind::kPlaced:
      task.holder = Holder{};
      task.holder->incarnation = fact.incarnation;
      task.holder->instance = fact.instance;
      task.holder->node = fact.node;
      return Status::Ok();
    case Fact::Kind::kLeased:
      if (!task.holder) return DataLoss("a lease without a launcher");
      task.holder->leased = true;
      last_leased_ = fact.at;
      if (!gathering_ && task.host.empty() && job_.roles[task.role].elastic() &&
          job_.roles[task.role].restart.scope != job::RestartScope::kTask) {
        roster_changed_[task.role] = true;
      }
      task.host = fact.host;
      task.ports = fact.ports;
      if (!task.active && !task.final) task.state = job::TaskState::kJoined;
      return Status::Ok();
    case Fact::Kind::kUnplaced:
      task.holder.reset();
      task.unplaced_at = fact.at;
      task.state = job::TaskState::kCreated;
      return Status::Ok();
    case Fact::Kind::kStarted:
      task.active = true;
      task.moved = fact.at;
      task.asked = false;
      task.evidence.reset();
      task.ready = job_.roles[task.role].ready.by == job::ReadyBy::kStart;
      task.recalled = false;
      task.results = 0;
      task.attempt = fact.attempt;
      task.attempts = fact.attempt + 1;
      task.state = job::TaskState::kRunning;
      return Status::Ok();
    case Fact::Kind::kDraining:
      task.state = job::TaskState::kDraining;
      task.kill_at = fact.due.count() > 0 ? fact.due : fact.at + job_.limits.stop_grace;
      task.killed = false;
      task.recalled = fact.restart;
      return Status::Ok();
    case Fact::Kind::kReady:
      task.ready = true;
      return Status::Ok();
    case Fact::Kind::kEnded:
      if (!fact.end) return DataLoss("an end without how");
      ApplyEnd(fact, &task);
      return Status::Ok();
    case Fact::Kind::kResult:
      ++task.results;
      return Status::Ok();
    default:
      return Status::Ok();
  }
}

void CoordinatorCore::ApplyEnd(const Fact& fact, Task* task) {
  const bool ran = std::exchange(task->active, false);
  task->end = fact.end;
  task->last_line = fact.last_line;
  task->ended_seq = fact.seq;
  task->ignored = fact.ignored;
  task->exhausted = fact.exhausted;
  task->suspended = suspending();
  restarted_ = restarted_ || fact.restart;
  task->recalled = false;
  task->why_ended = fact.end->ok() ? std::string() : fact.text;
  const auto kind = job::Classify(*fact.end, task->history.ooms);
  const bool death = kind == job::EndClass::kTransient || kind == job::EndClass::kPermanent;
  // Who is not started again is missed for good: what others die of is theirs, and counts.
  if (ran && death && fact.restart && !fact.consequence && !fact.stolen) {
    first_death_ = job::Death{static_cast<int>(generation_), job_.roles[task->role].name,
                              task->index, fact.at};
  }
  if (fact.end->kind == job::EndKind::kOutOfMemory) ++task->history.ooms;
  if (fact.counted) {
    ++restarts_;
    const job::RestartScope scope = job_.roles[task->role].restart.scope;
    ++(scope == job::RestartScope::kJob    ? job_restarts_
       : scope == job::RestartScope::kRole ? role_restarts_[task->role]
                                           : task->history.restarts);
  }
  if (!fact.restart) {
    task->final = true;
    task->state = job::TaskState::kEnded;
    const bool leaves = task->retired || !EndedWell(*task);
    if (leaves && job_.roles[task->role].elastic()) roster_changed_[task->role] = true;
    if (fact.end->kind == job::EndKind::kLost) task->holder.reset();
    return;
  }
  task->attempt = fact.attempt + 1;
  task->due = fact.due;
  task->state = task->holder ? job::TaskState::kJoined : job::TaskState::kCreated;
}

// All of the scope will be started again, who has ended well or was stopped included: the others'
// program may need it. Who has failed for good has not kept the job from going on, and stays out.
void CoordinatorCore::ApplyRestart(const Fact& fact) {
  const size_t role = tasks_[static_cast<size_t>(fact.task)].role;
  restarted_ = true;
  if (fact.stolen) {
    ++thefts_;
    tasks_[static_cast<size_t>(fact.task)].unplaced_at = fact.at;  // it is to lease again
  }
  regroup_due_ = std::max(regroup_due_.value_or(fact.due), fact.due);
  for (Task& task : tasks_) {
    if (!InScope(task, fact.scope, role)) continue;
    regrouping_[task.role] = true;
    roster_changed_[task.role] = false;
    const bool revived = task.final && !task.retired && task.end &&
                         (EndedWell(task) || task.end->kind == job::EndKind::kCancelled);
    if (!revived) continue;
    ++ends_version_;
    Count(task, -1);
    task.final = false;
    task.released = false;
    ++task.attempt;
    task.due = fact.due;
    task.unplaced_at = fact.at;
    task.state = !task.holder          ? job::TaskState::kCreated
                 : task.holder->leased ? job::TaskState::kJoined
                                       : job::TaskState::kCreated;
    Count(task, 1);
  }
}

}  // namespace shoal::rendezvous
