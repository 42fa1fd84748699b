#include "rendezvous/lifecycle/stop_policy.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "rendezvous/lifecycle/membership.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

void StopPolicy::ReleaseFinished() {
  bool job_scope = false;
  std::vector<bool> role_scope(state_->job.roles.size());
  const bool over = state_->ending();
  for (const Task& task : state_->tasks) {
    if (task.final || over) continue;
    const job::Role& role = state_->job.roles[task.role];
    const bool by_rule = std::any_of(
        role.on_exit.begin(), role.on_exit.end(),
        [](const job::ExitRule& one) { return one.action == job::EndAction::kRestartJob; });
    const bool by_line = std::any_of(
        role.on_log.begin(), role.on_log.end(),
        [](const job::LogRule& one) { return one.action == job::EndAction::kRestartJob; });
    if (role.restart.scope == job::RestartScope::kJob || by_rule || by_line) job_scope = true;
    if (role.restart.scope == job::RestartScope::kRole) role_scope[task.role] = true;
  }
  for (int number = 0; number < state_->tasks.size(); ++number) {
    Task& task = state_->tasks[number];
    const bool may_return = !task.scaled_down && (job_scope || role_scope[task.role]);
    if (!task.final || task.released || may_return) continue;
    task.released = true;
    if (task.connected()) {
      state_->Emit(Kind::kRelease, number).after = task.ended_seq;
    }
  }
}

void StopPolicy::On(const Command& event) {
  if (state_->verdict || event.mode <= state_->stop) return;
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kJob, -1);
  record.state = job::JobState::kFinishing;
  record.stop = event.mode;
  // A stopped job is cancelled even if all its tasks then save and exit with 0: the work is not
  // done.
  record.decided = state_->decided.value_or(job::JobState::kCancelled);
  record.text = state_->decided ? state_->stop_reason : event.reason;
  state_->Record(std::move(record));
  state_->reevaluate = true;
}

bool StopPolicy::DrainFollowers() {
  bool ended = false;
  for (size_t r = 0; r < state_->job.roles.size(); ++r) {
    const std::string& leader = state_->job.roles[r].follows;
    if (leader.empty() || !state_->tasks.RoleEnded(leader)) continue;
    for (int number = 0; number < state_->tasks.size(); ++number) {
      if (state_->tasks[number].role != r) continue;
      ended = DrainTask(number, "every task of " + leader + " has ended") || ended;
    }
  }
  return ended;
}

bool StopPolicy::DrainForStop() {
  if (state_->stop == StopMode::kNone) return false;
  bool ended = false;
  for (int number = 0; number < state_->tasks.size(); ++number) {
    Task& task = state_->tasks[number];
    if (state_->stop == StopMode::kDrain && !state_->job.roles[task.role].follows.empty() &&
        task.running()) {
      continue;
    }
    ended = DrainTask(number, state_->stop_reason) || ended;
    if (state_->stop == StopMode::kKill && task.running() &&
        task.drain.last_signal == StopSignal::kTerm)
      task.drain.kill_at = state_->now;
    if (state_->stop == StopMode::kKill) CheckDraining(number);
  }
  return ended;
}

bool StopPolicy::DrainTask(int number, const std::string& why) {
  const Task& task = state_->tasks[number];
  if (task.final || task.state == job::TaskState::kDraining) return false;
  if (task.running()) {
    const int signal = state_->suspending() ? state_->job.roles[task.role].checkpoint_signal : 0;
    JournalRecord record = state_->RecordFor(JournalRecord::Kind::kDraining, number);
    record.text = why;
    if (signal != 0) record.due = state_->now + 2 * state_->job.limits.stop_grace;
    state_->Record(std::move(record));
    // The description tells that the job is ending and must arrive before the signal: a parameter
    // server then does not hand its rows over, and a Shoal worker that saves early ends well.
    const std::string& leader = state_->job.roles[task.role].follows;
    const bool ending = state_->ending();
    const bool reads = !leader.empty() || state_->job.framework == job::Framework::kShoal;
    if (reads && (ending || (!leader.empty() && state_->tasks.RoleEnded(leader))))
      state_->Emit(Kind::kDescribe, number);
    Action& action = state_->Emit(Kind::kDrain, number);
    action.attempt = task.attempt;
    action.grace = state_->job.limits.stop_grace;
    action.signal = signal;
    action.text = why;
    return false;
  }
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kEnded, number);
  record.end = job::CancelledEnd(why);
  state_->Record(std::move(record));
  return true;
}

void StopPolicy::CheckDraining(int number) {
  Task& task = state_->tasks[number];
  if (task.state != job::TaskState::kDraining || state_->now < task.drain.kill_at) return;
  if (task.drain.last_signal == StopSignal::kKill) {
    membership_->LoseLauncher(number, "it did not end after SIGKILL");
    return;
  }
  task.drain.last_signal = StopSignal::kKill;
  task.drain.kill_at = state_->now + state_->limits.kill_timeout;
  state_->touched.push_back(number);
  Action& action = state_->Emit(Kind::kKill, number);
  action.attempt = task.attempt;
  action.abandon = state_->stop == StopMode::kKill;
  action.text = "it did not end within " + FormatDuration(state_->job.limits.stop_grace);
}

void StopPolicy::On(const Suspend& event) {
  if (state_->suspending()) return;
  if (state_->verdict || state_->decided || state_->stop != StopMode::kNone) {
    state_->Emit(Kind::kNote).text = SuspendRefusalText("the job is ending already");
    return;
  }
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kJob, -1);
  record.state = state_->job_state;
  record.decided = job::JobState::kSuspended;
  record.stop = StopMode::kDrain;
  record.text = event.reason;
  state_->Record(std::move(record));
  state_->reevaluate = true;
}

}  // namespace shoal::rendezvous
