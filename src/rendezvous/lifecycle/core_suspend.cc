// A job that is suspended: its programs end as in a drain, its verdict is that it is suspended, and
// another coordinator goes on from the journal when it is resumed.
#include <algorithm>

#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

void CoordinatorCore::On(const Suspend& event) {
  if (suspending()) return;  // told again
  if (verdict_ || decided_ || stop_ != StopMode::kNone) {
    Emit(Kind::kNote).text = std::string(kNotSuspended) + "the job is ending already";
    return;
  }
  JournalRecord record = RecordFor(JournalRecord::Kind::kJob, -1);
  record.state = job_state_;
  record.decided = job::JobState::kSuspended;
  record.stop = StopMode::kDrain;
  record.text = event.reason;
  Record(std::move(record));
  reevaluate_ = true;
}

// Whom the suspension ended goes on. Who had ended well before, too, where the others of its scope
// may wait for it (as after a death, ApplyRestart).
bool CoordinatorCore::RunsAgainAfterResume(const Task& task) const {
  if (!task.final || task.suspended) return true;
  if (!EndedWell(task)) return false;
  const bool whole = std::any_of(job_.roles.begin(), job_.roles.end(), [](const job::Role& role) {
    return role.restart.scope == job::RestartScope::kJob;
  });
  return whole || job_.roles[task.role].restart.scope == job::RestartScope::kRole;
}

void CoordinatorCore::ApplyResumed(const JournalRecord& record) {
  resumes_ = record.replicas;
  verdict_.reset();
  decided_.reset();
  first_death_.reset();
  group_restart_due_.reset();
  std::fill(restarting_group_.begin(), restarting_group_.end(), false);
  std::fill(membership_changed_.begin(), membership_changed_.end(), false);
  stop_ = StopMode::kNone;
  stop_reason_.clear();
  job_state_ = job::JobState::kStarting;
  stalled_ = false;
  gathering_ = true;
  gather_from_ = record.at;
  ++ends_version_;
  std::fill(counts_.begin(), counts_.end(), RoleCount{});
  for (Task& task : tasks_) {
    const bool goes_on = !task.scaled_down && RunsAgainAfterResume(task);
    task.launcher.reset();
    task.released = false;
    task.unassigned_since = record.at;
    if (goes_on) {
      task.final = task.suspended = task.stopping_for_restart = task.killed = false;
      task.attempt = task.attempts;
      task.due = record.at;
      task.end.reset();
      task.host.clear();
      task.ports.clear();
      task.state = job::TaskState::kCreated;
    }
    UpdateCounts(task, 1);
  }
}

}  // namespace shoal::rendezvous
