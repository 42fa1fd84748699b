// When programs start, how they end, and what is started again: alone, with their role or with the
// whole job.
#include <algorithm>

#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

namespace {

std::string_view ScopeName(job::RestartScope scope) {
  return scope == job::RestartScope::kJob ? "the job" : "its role";
}

}  // namespace

// ---- Starts -------------------------------------------------------------------------------------

bool CoordinatorCore::IsStartBlocked(int number) const {
  const Task& task = tasks_[static_cast<size_t>(number)];
  if (group_restart_due_ && restarting_group_[task.role]) return true;
  if (OnExcludedHost(task)) return true;
  const job::After& after = job_.roles[task.role].after;
  for (const std::string& name : after.roles) {
    for (size_t r = 0; r < job_.roles.size(); ++r) {
      if (job_.roles[r].name != name) continue;
      const RoleCount& count = counts_[r];
      const int there = after.when == job::AfterWhen::kEnded     ? 0
                        : after.when == job::AfterWhen::kStarted ? count.active
                                                                 : count.ready;
      const int missing = after.when == job::AfterWhen::kEnded ? 0 : count.missing;
      if (there + count.final < count.tasks - missing) return true;
    }
  }
  return false;
}

bool CoordinatorCore::StartIfDue(int number) {
  const Task& task = tasks_[static_cast<size_t>(number)];
  if (gathering_ || task.active || task.final || stop_ != StopMode::kNone) return false;
  if (!task.launcher || !task.launcher->leased || task.launcher->member == 0 || task.due > now_) {
    return false;
  }
  if (IsStartBlocked(number)) return false;
  Record(RecordFor(JournalRecord::Kind::kStarted, number));
  // Who comes back may have been the only one who knew who has ended.
  if (task.attempt > 0) BroadcastEnds(0);
  Emit(Kind::kStart, number).attempt = task.attempt;
  return true;
}

// Those whose turn it is now by the order of roles; their start may be the next one's turn.
void CoordinatorCore::StartUnblocked() {
  bool started = !gathering_ && stop_ == StopMode::kNone;
  while (started) {
    started = false;
    for (int number = 0; number < task_count(); ++number) {
      if (role_of(number).after.roles.empty()) continue;
      started = StartIfDue(number) || started;
    }
  }
}

void CoordinatorCore::On(const ProgramReady& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  Task& task = tasks_[static_cast<size_t>(*number)];
  task.launcher->heard = now_;
  if (!task.active || task.ready || event.attempt != task.attempt) return;
  Record(RecordFor(JournalRecord::Kind::kReady, *number));
  reevaluate_ = true;
}

// ---- Ends ---------------------------------------------------------------------------------------

void CoordinatorCore::On(const ProgramEnded& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  Task& task = tasks_[static_cast<size_t>(*number)];
  task.launcher->heard = now_;
  const bool draining = task.state == job::TaskState::kDraining;
  if (task.active && event.attempt == task.attempt) {
    // A launcher that was told to stop starts nothing any more: the place needs another one.
    if (!event.interrupted.empty() && !draining)
      return LoseLauncher(*number, event.interrupted, &event);
    EndAttempt(*number, event);
  } else if (event.attempt < task.attempt || task.final) {
    // Told again, as the acknowledgement was lost with the connection.
    Action& ack = Emit(Kind::kAck, *number);
    ack.attempt = event.attempt;
    ack.after = task.ended_seq;
    if (task.final && task.released) Emit(Kind::kRelease, *number).after = task.ended_seq;
  }
}

job::RestartHistory CoordinatorCore::HistoryOf(const Task& task) const {
  job::RestartHistory history = task.history;
  history.of_job = restarts_;
  const job::RestartScope scope = job_.roles[task.role].restart.scope;
  if (scope == job::RestartScope::kRole) history.restarts = role_restarts_[task.role];
  if (scope == job::RestartScope::kJob) history.restarts = job_restarts_;
  return history;
}

job::RestartDecision CoordinatorCore::DecideRestart(const Task& task, const ProgramEnded& how,
                                                    bool consequence) const {
  const job::TaskEnd& end = how.end;
  job::RestartDecision decision;
  if (stop_ != StopMode::kNone || decided_) {
    if (!end.ok()) decision.reason = "not restarted, as it was being stopped";
    return decision;
  }
  if (task.scaled_down) {
    if (!end.ok()) decision.reason = "not restarted, as its role was made smaller";
    return decision;
  }
  if (task.stopping_for_restart) {
    decision.restart = true;
    decision.reason = "stopped to be started again with the others";
    return decision;
  }
  if (task.state == job::TaskState::kDraining) {
    if (!end.ok()) decision.reason = "not restarted, as it was being stopped";
    return decision;
  }
  if (!how.port_conflict.empty() && !end.ok() && MayRestartForPortConflict(task)) {
    decision.restart = true;
    decision.reason = "restarted without counting it, as " + how.port_conflict;
    return decision;
  }
  const job::RestartHistory history = HistoryOf(task);
  decision = job::DecideEnd(job_.roles[task.role], end, history, consequence, how.log_rule);
  return job::LimitRestarts(job_.limits, history, std::move(decision));
}

job::TaskEnd CoordinatorCore::EffectiveEnd(const Task& task, const ProgramEnded& how,
                                           bool stopping_for_restart) const {
  const job::TaskEnd& end = how.end;
  const bool draining = task.state == job::TaskState::kDraining;
  // Of whom the job's suspension ends it does not matter how: it has not done its work.
  if (suspending() || (draining && (stopping_for_restart || !end.ok()))) {
    return job::CancelledEnd(job::Describe(end));
  }
  // A server of ours ends only when it is told to. Where the signal came from outside and reached
  // the program before its launcher, nothing else says so, and the workers would wait for it.
  const job::Role& role = job_.roles[task.role];
  const bool serves = job_.framework == job::Framework::kShoal && !role.follows.empty();
  if (serves && !draining && !task.scaled_down && end.ok() && how.interrupted.empty() &&
      stop_ == StopMode::kNone && !decided_ && !RoleEnded(role.follows)) {
    return job::Lost("it ended well before " + role.follows +
                     " had, and the coordinator had not told it to");
  }
  // An exit code tells nothing once somebody else has told the program to stop: the engine evicts
  // it, or a person stops its container. But the file may have a rule for just this code.
  if (draining || how.interrupted.empty() || end.kind != job::EndKind::kExit) return end;
  const auto& rules = role.on_exit;
  const bool ruled = std::any_of(rules.begin(), rules.end(), [&](const job::ExitRule& rule) {
    const auto match = job::ParseExitMatch(rule.code);
    return match && job::MatchesEnd(*match, end);
  });
  if (ruled) return end;
  return job::Lost(how.interrupted + " that the coordinator had not sent; that it then " +
                   job::Describe(end) + " does not count");
}

void CoordinatorCore::EndAttempt(int number, const ProgramEnded& how) {
  const Task& task = tasks_[static_cast<size_t>(number)];
  const bool stopping_for_restart =
      task.stopping_for_restart && stop_ == StopMode::kNone && !decided_;
  job::TaskEnd end = EffectiveEnd(task, how, stopping_for_restart);
  const auto kind = job::ClassifyEnd(end, task.history.ooms);
  const bool death = kind == job::EndClass::kTransient || kind == job::EndClass::kPermanent;
  const job::TaskFailure this_death{static_cast<int>(generation_), role_of(number).name, task.index,
                                    now_};
  const bool consequence = death && end.kind != job::EndKind::kOutOfMemory &&
                           job::IsConsequence(first_death_, this_death);
  ProgramEnded judged = how;
  judged.end = end;
  const job::RestartDecision decision = DecideRestart(task, judged, consequence);
  const bool port_conflict = !how.port_conflict.empty() && !end.ok() && !stopping_for_restart &&
                             decision.restart && MayRestartForPortConflict(task);
  if (decision.exclude_host && !port_conflict)
    ExcludeHostOf(number, NameOf(number) + " " + job::Describe(end) + ", which " + decision.rule +
                              " takes for its host's fault");

  JournalRecord record = RecordFor(JournalRecord::Kind::kEnded, number);
  record.end = std::move(end);
  record.last_line = how.last_line;
  record.text = decision.reason;
  record.restart = decision.restart;
  record.counted = decision.counted;
  record.ignored = decision.ignored;
  record.exhausted = decision.exhausted;
  record.consequence = consequence && !port_conflict;
  record.port_conflict = port_conflict;
  if (decision.restart) record.due = now_ + decision.delay;
  const Millis due = record.due;
  const int attempt = task.attempt;
  const int64_t stored = Record(std::move(record));
  reevaluate_ = true;
  if (task.launcher && task.launcher->member != 0) {
    Action& ack = Emit(Kind::kAck, number);
    ack.attempt = attempt;
    ack.after = stored;
  }
  // What an ending task told others they may lose with whom they told it to.
  if (EndedWell(task) && restarted_) BroadcastEnds(stored);
  if (port_conflict) {
    RestartGroupForPortConflict(number, how.port_conflict);
  } else if (decision.restart && decision.scope != job::RestartScope::kTask) {
    JournalRecord restart = RecordFor(JournalRecord::Kind::kRestart, number);
    restart.scope = decision.scope;
    restart.due = due;
    const std::string died = NameOf(number) + " " + job::Describe(*task.end);
    restart.text = died + "; all tasks of " +
                   (decision.scope == job::RestartScope::kJob ? "the job" : role_of(number).name) +
                   " are started again (" + task.why_ended + ")";
    RestartGroup(std::move(restart),
                 "started again with " + std::string(ScopeName(decision.scope)) + ", as " + died);
  }
  StartIfDue(number);
}

// ---- Scopes -------------------------------------------------------------------------------------

bool CoordinatorCore::AllLeased() const {
  return std::all_of(counts_.begin(), counts_.end(), [this](const RoleCount& one) {
    // Those who had ended before a suspension need no launcher any more.
    return one.leased + (resumes_ > 0 ? one.final : 0) == one.tasks;
  });
}

bool CoordinatorCore::InScope(const Task& task, job::RestartScope scope, size_t role) const {
  return scope == job::RestartScope::kJob ||
         (scope == job::RestartScope::kRole && task.role == role);
}

void CoordinatorCore::RestartGroup(JournalRecord restart, const std::string& why) {
  const job::RestartScope scope = restart.scope;
  const size_t role = tasks_[static_cast<size_t>(restart.task)].role;
  const Millis grace = restart.port_conflict
                           ? std::min(job_.limits.stop_grace, limits_.port_conflict_grace)
                           : job_.limits.stop_grace;
  Record(std::move(restart));
  for (int other = 0; other < task_count(); ++other) {
    const Task& task = tasks_[static_cast<size_t>(other)];
    if (!task.active || task.stopping_for_restart || task.scaled_down ||
        !InScope(task, scope, role))
      continue;
    JournalRecord drain = RecordFor(JournalRecord::Kind::kDraining, other);
    drain.text = why;
    drain.restart = true;
    drain.due = now_ + grace;
    Record(std::move(drain));
    Action& action = Emit(Kind::kDrain, other);
    action.attempt = task.attempt;
    action.grace = grace;
    action.text = why;
  }
}

// ---- Stolen ports -------------------------------------------------------------------------------

bool CoordinatorCore::MayRestartForPortConflict(const Task& task) const {
  return port_conflicts_ < limits_.max_port_conflicts && stop_ == StopMode::kNone && !decided_ &&
         !task.stopping_for_restart && task.state != job::TaskState::kDraining;
}

void CoordinatorCore::On(const PortConflict& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  const Task& task = tasks_[static_cast<size_t>(*number)];
  if (!task.active || event.attempt != task.attempt || task.stopping_for_restart) return;
  if (MayRestartForPortConflict(task)) {
    RestartGroupForPortConflict(*number, event.text);
    reevaluate_ = true;
  } else if (port_conflicts_ >= limits_.max_port_conflicts && !decided_ &&
             stop_ == StopMode::kNone) {
    DecideVerdict(job::JobState::kFailed,
                  "ports of this job were taken " + std::to_string(port_conflicts_) +
                      " times; at last of " + NameOf(*number) + ": " + event.text);
  }
}

// Whoever dialled that port may talk to somebody of another job: nobody is left to, and nobody is
// to blame.
void CoordinatorCore::RestartGroupForPortConflict(int number, const std::string& how) {
  JournalRecord restart = RecordFor(JournalRecord::Kind::kRestart, number);
  restart.scope = job::RestartScope::kJob;
  restart.due = now_;
  restart.port_conflict = true;
  restart.text = NameOf(number) + ": " + how +
                 "; all tasks of the job are started again with other ports, which counts against "
                 "nobody";
  RestartGroup(std::move(restart),
               "started again with the job, as of " + NameOf(number) + " " + how);
  const Task& task = tasks_[static_cast<size_t>(number)];
  if (!task.launcher || task.launcher->member == 0) return;
  // The same launcher takes the place anew, and so leases anew.
  LauncherJoined hello;
  hello.member = task.launcher->member;
  hello.incarnation = task.launcher->incarnation;
  hello.instance = task.launcher->instance;
  hello.node = task.launcher->node;
  AssignLauncher(number, hello);
}

// When the last of the scope has ended and all are there again.
void CoordinatorCore::FinishGroupRestart() {
  if (!group_restart_due_ || stop_ != StopMode::kNone || decided_ || now_ < *group_restart_due_)
    return;
  for (const Task& task : tasks_) {
    if (!restarting_group_[task.role] || task.final) continue;
    if (task.active) return;
    const RoleCount& count = counts_[task.role];
    const bool newcomer = job_.roles[task.role].elastic() && task.host.empty();
    if (newcomer && count.there >= job_.roles[task.role].least()) continue;  // not waited for
    if (!task.launcher || !task.launcher->leased || task.launcher->member == 0) return;
  }
  IssueGeneration(true);
  for (int number = 0; number < task_count(); ++number) StartIfDue(number);
}

void CoordinatorCore::ReleaseFinished() {
  bool job_scope = false;
  std::vector<bool> role_scope(job_.roles.size());
  const bool over = stop_ != StopMode::kNone || decided_;
  for (const Task& task : tasks_) {
    if (task.final || over) continue;
    const job::Role& role = job_.roles[task.role];
    const bool by_rule = std::any_of(
        role.on_exit.begin(), role.on_exit.end(),
        [](const job::ExitRule& one) { return one.action == job::EndAction::kRestartJob; });
    const bool by_line = std::any_of(
        role.on_log.begin(), role.on_log.end(),
        [](const job::LogRule& one) { return one.action == job::EndAction::kRestartJob; });
    if (role.restart.scope == job::RestartScope::kJob || by_rule || by_line) job_scope = true;
    if (role.restart.scope == job::RestartScope::kRole) role_scope[task.role] = true;
  }
  for (int number = 0; number < task_count(); ++number) {
    Task& task = tasks_[static_cast<size_t>(number)];
    const bool may_return = !task.scaled_down && (job_scope || role_scope[task.role]);
    if (!task.final || task.released || may_return) continue;
    task.released = true;
    if (task.launcher && task.launcher->member != 0) {
      Emit(Kind::kRelease, number).after = task.ended_seq;
    }
  }
}

}  // namespace shoal::rendezvous
