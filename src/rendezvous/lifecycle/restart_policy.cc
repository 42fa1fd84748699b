#include "rendezvous/lifecycle/restart_policy.h"

#include <algorithm>

namespace shoal::rendezvous {

job::RestartHistory RestartPolicy::HistoryOf(const Task& task) const {
  job::RestartHistory history = task.history;
  history.of_job = restarts_;
  const job::RestartScope scope = state_->job.roles[task.role].restart.scope;
  if (scope == job::RestartScope::kRole) history.restarts = role_restarts_[task.role];
  if (scope == job::RestartScope::kJob) history.restarts = job_restarts_;
  return history;
}

job::RestartDecision RestartPolicy::DecideRestart(const Task& task, const ProgramEnded& how,
                                                  bool consequence) const {
  const job::TaskEnd& end = how.end;
  job::RestartDecision decision;
  if (state_->ending()) {
    if (!end.ok()) decision.reason = "not restarted, as it was being stopped";
    return decision;
  }
  if (task.scaled_down) {
    if (!end.ok()) decision.reason = "not restarted, as its role was made smaller";
    return decision;
  }
  if (task.drains_for_restart()) {
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
  decision = job::DecideEnd(state_->job.roles[task.role], end, history, consequence, how.log_rule);
  return job::LimitRestarts(state_->job.limits, history, std::move(decision));
}

job::TaskEnd RestartPolicy::EffectiveEnd(const Task& task, const ProgramEnded& how,
                                         bool stopping_for_restart) const {
  const job::TaskEnd& end = how.end;
  const bool draining = task.state == job::TaskState::kDraining;
  // How a suspended program ends does not matter: its work is not done.
  if (state_->suspending() || (draining && (stopping_for_restart || !end.ok()))) {
    return job::CancelledEnd(job::Describe(end));
  }
  // Shoal's parameter server ends only when it is told to. If it ends well before its workers, a
  // signal from elsewhere reached the program before its launcher: without this rule the workers
  // would wait for it.
  const job::Role& role = state_->job.roles[task.role];
  const bool serves = state_->job.framework == job::Framework::kShoal && !role.follows.empty();
  if (serves && !draining && !task.scaled_down && end.ok() && how.interrupted.empty() &&
      !state_->ending() && !state_->tasks.RoleEnded(role.follows)) {
    return job::Lost("it ended well before " + role.follows +
                     " had, and the coordinator had not told it to");
  }
  // An exit code says nothing once something else has told the program to stop: an eviction, or a
  // container that is stopped by hand. Unless the job file has a rule for just this code.
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

bool RestartPolicy::MayRestartForPortConflict(const Task& task) const {
  return port_conflicts_ < state_->limits.max_port_conflicts && !state_->ending() &&
         !task.drains_for_restart() && task.state != job::TaskState::kDraining;
}

bool RestartPolicy::IsConsequence(const job::TaskFailure& death) const {
  return job::IsConsequence(first_death_, death);
}

void RestartPolicy::ApplyEnd(const JournalRecord& record, Task* task, bool ran) {
  restarted_ = restarted_ || record.restart;
  const auto kind = job::ClassifyEnd(*record.end, task->history.ooms);
  const bool death = kind == job::EndClass::kTransient || kind == job::EndClass::kPermanent;
  // A task that is not started again is missing for good: later deaths are not its consequences.
  if (ran && death && record.restart && !record.consequence && !record.port_conflict) {
    first_death_ = job::TaskFailure{static_cast<int>(state_->generation),
                                    state_->job.roles[task->role].name, task->index, record.at};
  }
  if (record.end->kind == job::EndKind::kOutOfMemory) ++task->history.ooms;
  if (!record.counted) return;
  ++restarts_;
  const job::RestartScope scope = state_->job.roles[task->role].restart.scope;
  ++(scope == job::RestartScope::kJob    ? job_restarts_
     : scope == job::RestartScope::kRole ? role_restarts_[task->role]
                                         : task->history.restarts);
}

void RestartPolicy::ApplyRestart(const JournalRecord& record) {
  restarted_ = true;
  if (record.port_conflict) ++port_conflicts_;
}

void RestartPolicy::ApplyStall(const JournalRecord& record) {
  if (record.counted) ++restarts_;
}

}  // namespace shoal::rendezvous
