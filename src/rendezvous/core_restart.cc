// When programs start, how they end, and what is started again: alone, with their role or with the
// whole job.
#include <algorithm>

#include "rendezvous/coordinator_core.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

namespace {

std::string_view ScopeName(job::RestartScope scope) {
  return scope == job::RestartScope::kJob ? "the job" : "its role";
}

}  // namespace

// ---- Starts -------------------------------------------------------------------------------------

bool CoordinatorCore::Blocked(int number) const {
  const Task& task = tasks_[static_cast<size_t>(number)];
  if (regroup_due_ && regrouping_[task.role]) return true;
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
  if (!task.holder || !task.holder->leased || task.holder->member == 0 || task.due > now_) {
    return false;
  }
  if (Blocked(number)) return false;
  Record(FactOf(Fact::Kind::kStarted, number));
  // Who comes back may have been the only one who knew who has ended.
  if (task.attempt > 0) DescribeEnds(0);
  Do(Kind::kStart, number).attempt = task.attempt;
  return true;
}

// Those whose turn it is now by the order of roles; their start may be the next one's turn.
void CoordinatorCore::StartWaiting() {
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
  task.holder->heard = now_;
  if (!task.active || task.ready || event.attempt != task.attempt) return;
  Record(FactOf(Fact::Kind::kReady, *number));
  unsettled_ = true;
}

// ---- Ends ---------------------------------------------------------------------------------------

void CoordinatorCore::On(const ProgramEnded& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  Task& task = tasks_[static_cast<size_t>(*number)];
  task.holder->heard = now_;
  const bool draining = task.state == job::TaskState::kDraining;
  if (task.active && event.attempt == task.attempt) {
    // A launcher that was told to stop starts nothing any more: the place needs another one.
    if (!event.interrupted.empty() && !draining)
      return LoseHolder(*number, event.interrupted, &event);
    EndAttempt(*number, event);
  } else if (event.attempt < task.attempt || task.final) {
    // Told again, as the acknowledgement was lost with the connection.
    Action& ack = Do(Kind::kAck, *number);
    ack.attempt = event.attempt;
    ack.after = task.ended_seq;
    if (task.final && task.released) Do(Kind::kRelease, *number).after = task.ended_seq;
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

job::RestartDecision CoordinatorCore::Decide(const Task& task, const ProgramEnded& how,
                                             bool consequence) const {
  const job::TaskEnd& end = how.end;
  job::RestartDecision decision;
  if (stop_ != StopMode::kNone || decided_) {
    if (!end.ok()) decision.reason = "not restarted, as it was being stopped";
    return decision;
  }
  if (task.retired) {
    if (!end.ok()) decision.reason = "not restarted, as its role was made smaller";
    return decision;
  }
  if (task.recalled) {
    decision.restart = true;
    decision.reason = "stopped to be started again with the others";
    return decision;
  }
  if (task.state == job::TaskState::kDraining) {
    if (!end.ok()) decision.reason = "not restarted, as it was being stopped";
    return decision;
  }
  if (!how.stolen.empty() && !end.ok() && MayRestartForTheft(task)) {
    decision.restart = true;
    decision.reason = "restarted without counting it, as " + how.stolen;
    return decision;
  }
  const job::RestartHistory history = HistoryOf(task);
  decision = job::DecideEnd(job_.roles[task.role], end, history, consequence, how.log_rule);
  return job::LimitRestarts(job_.limits, history, std::move(decision));
}

job::TaskEnd CoordinatorCore::EndThatCounts(const Task& task, const ProgramEnded& how,
                                            bool recalled) const {
  const job::TaskEnd& end = how.end;
  const bool draining = task.state == job::TaskState::kDraining;
  // Of whom the job's suspension ends it does not matter how: it has not done its work.
  if (suspending() || (draining && (recalled || !end.ok()))) {
    return job::CancelledEnd(job::Describe(end));
  }
  // A server of ours ends only when it is told to. Where the signal came from outside and reached
  // the program before its launcher, nothing else says so, and the workers would wait for it.
  const job::Role& role = job_.roles[task.role];
  const bool serves = job_.framework == job::Framework::kShoal && !role.follows.empty();
  if (serves && !draining && !task.retired && end.ok() && how.interrupted.empty() &&
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
    return match && job::Matches(*match, end);
  });
  if (ruled) return end;
  return job::Lost(how.interrupted + " that the coordinator had not sent; that it then " +
                   job::Describe(end) + " does not count");
}

void CoordinatorCore::EndAttempt(int number, const ProgramEnded& how) {
  const Task& task = tasks_[static_cast<size_t>(number)];
  const bool recalled = task.recalled && stop_ == StopMode::kNone && !decided_;
  job::TaskEnd end = EndThatCounts(task, how, recalled);
  const auto kind = job::Classify(end, task.history.ooms);
  const bool death = kind == job::EndClass::kTransient || kind == job::EndClass::kPermanent;
  const job::Death this_death{static_cast<int>(generation_), role_of(number).name, task.index,
                              now_};
  const bool consequence = death && end.kind != job::EndKind::kOutOfMemory &&
                           job::IsConsequence(first_death_, this_death);
  ProgramEnded judged = how;
  judged.end = end;
  const job::RestartDecision decision = Decide(task, judged, consequence);
  const bool stolen =
      !how.stolen.empty() && !end.ok() && !recalled && decision.restart && MayRestartForTheft(task);
  if (decision.exclude_host && !stolen)
    Exclude(number, NameOf(number) + " " + job::Describe(end) + ", which " + decision.rule +
                        " takes for its host's fault");

  Fact fact = FactOf(Fact::Kind::kEnded, number);
  fact.end = std::move(end);
  fact.last_line = how.last_line;
  fact.text = decision.reason;
  fact.restart = decision.restart;
  fact.counted = decision.counted;
  fact.ignored = decision.ignored;
  fact.exhausted = decision.exhausted;
  fact.consequence = consequence && !stolen;
  fact.stolen = stolen;
  if (decision.restart) fact.due = now_ + decision.delay;
  const Millis due = fact.due;
  const int attempt = task.attempt;
  const int64_t stored = Record(std::move(fact));
  unsettled_ = true;
  if (task.holder && task.holder->member != 0) {
    Action& ack = Do(Kind::kAck, number);
    ack.attempt = attempt;
    ack.after = stored;
  }
  // What an ending task told others they may lose with whom they told it to.
  if (EndedWell(task) && restarted_) DescribeEnds(stored);
  if (stolen) {
    RegroupForTheft(number, how.stolen);
  } else if (decision.restart && decision.scope != job::RestartScope::kTask) {
    Fact restart = FactOf(Fact::Kind::kRestart, number);
    restart.scope = decision.scope;
    restart.due = due;
    const std::string died = NameOf(number) + " " + job::Describe(*task.end);
    restart.text = died + "; all tasks of " +
                   (decision.scope == job::RestartScope::kJob ? "the job" : role_of(number).name) +
                   " are started again (" + task.why_ended + ")";
    Regroup(std::move(restart),
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

void CoordinatorCore::Regroup(Fact restart, const std::string& why) {
  const job::RestartScope scope = restart.scope;
  const size_t role = tasks_[static_cast<size_t>(restart.task)].role;
  const Millis grace = restart.stolen ? std::min(job_.limits.stop_grace, limits_.theft_grace)
                                      : job_.limits.stop_grace;
  Record(std::move(restart));
  for (int other = 0; other < task_count(); ++other) {
    const Task& task = tasks_[static_cast<size_t>(other)];
    if (!task.active || task.recalled || task.retired || !InScope(task, scope, role)) continue;
    Fact drain = FactOf(Fact::Kind::kDraining, other);
    drain.text = why;
    drain.restart = true;
    drain.due = now_ + grace;
    Record(std::move(drain));
    Action& action = Do(Kind::kDrain, other);
    action.attempt = task.attempt;
    action.grace = grace;
    action.text = why;
  }
}

// ---- Stolen ports -------------------------------------------------------------------------------

bool CoordinatorCore::MayRestartForTheft(const Task& task) const {
  return thefts_ < limits_.thefts && stop_ == StopMode::kNone && !decided_ && !task.recalled &&
         task.state != job::TaskState::kDraining;
}

void CoordinatorCore::On(const PortStolen& event) {
  const auto number = TaskOf(event.member);
  if (!number) return;
  const Task& task = tasks_[static_cast<size_t>(*number)];
  if (!task.active || event.attempt != task.attempt || task.recalled) return;
  if (MayRestartForTheft(task)) {
    RegroupForTheft(*number, event.text);
    unsettled_ = true;
  } else if (thefts_ >= limits_.thefts && !decided_ && stop_ == StopMode::kNone) {
    DecideVerdict(job::JobState::kFailed, "ports of this job were taken " +
                                              std::to_string(thefts_) + " times; at last of " +
                                              NameOf(*number) + ": " + event.text);
  }
}

// Whoever dialled that port may talk to somebody of another job: nobody is left to, and nobody is
// to blame.
void CoordinatorCore::RegroupForTheft(int number, const std::string& how) {
  Fact restart = FactOf(Fact::Kind::kRestart, number);
  restart.scope = job::RestartScope::kJob;
  restart.due = now_;
  restart.stolen = true;
  restart.text = NameOf(number) + ": " + how +
                 "; all tasks of the job are started again with other ports, which counts against "
                 "nobody";
  Regroup(std::move(restart), "started again with the job, as of " + NameOf(number) + " " + how);
  const Task& task = tasks_[static_cast<size_t>(number)];
  if (!task.holder || task.holder->member == 0) return;
  // The same launcher takes the place anew, and so leases anew.
  Joined hello;
  hello.member = task.holder->member;
  hello.incarnation = task.holder->incarnation;
  hello.instance = task.holder->instance;
  hello.node = task.holder->node;
  Place(number, hello);
}

// When the last of the scope has ended and all are there again.
void CoordinatorCore::FinishRegroup() {
  if (!regroup_due_ || stop_ != StopMode::kNone || decided_ || now_ < *regroup_due_) return;
  for (const Task& task : tasks_) {
    if (!regrouping_[task.role] || task.final) continue;
    if (task.active) return;
    const RoleCount& count = counts_[task.role];
    const bool newcomer = job_.roles[task.role].elastic() && task.host.empty();
    if (newcomer && count.there >= job_.roles[task.role].least()) continue;  // not waited for
    if (!task.holder || !task.holder->leased || task.holder->member == 0) return;
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
    const bool may_return = !task.retired && (job_scope || role_scope[task.role]);
    if (!task.final || task.released || may_return) continue;
    task.released = true;
    if (task.holder && task.holder->member != 0) {
      Do(Kind::kRelease, number).after = task.ended_seq;
    }
  }
}

}  // namespace shoal::rendezvous
