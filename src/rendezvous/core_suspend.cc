// A job that is suspended: its programs end as in a drain, its verdict is that it is suspended, and
// another coordinator goes on from the journal when it is resumed.
#include <algorithm>

#include "rendezvous/coordinator_core.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

void CoordinatorCore::On(const Suspend& event) {
  if (suspending()) return;  // told again
  if (verdict_ || decided_ || stop_ != StopMode::kNone) {
    Do(Kind::kNote).text = std::string(kNotSuspended) + "the job is ending already";
    return;
  }
  Fact fact = FactOf(Fact::Kind::kJob, -1);
  fact.state = job_state_;
  fact.decided = job::JobState::kSuspended;
  fact.stop = StopMode::kDrain;
  fact.text = event.reason;
  Record(std::move(fact));
  unsettled_ = true;
}

// Whom the suspension ended goes on. Who had ended well before, too, where the others of its scope
// may wait for it (as after a death, ApplyRestart).
bool CoordinatorCore::GoesOnAfterResume(const Task& task) const {
  if (!task.final || task.suspended) return true;
  if (!EndedWell(task)) return false;
  const bool whole = std::any_of(job_.roles.begin(), job_.roles.end(), [](const job::Role& role) {
    return role.restart.scope == job::RestartScope::kJob;
  });
  return whole || job_.roles[task.role].restart.scope == job::RestartScope::kRole;
}

void CoordinatorCore::ApplyResumed(const Fact& fact) {
  resumes_ = fact.replicas;
  verdict_.reset();
  decided_.reset();
  first_death_.reset();
  regroup_due_.reset();
  std::fill(regrouping_.begin(), regrouping_.end(), false);
  std::fill(roster_changed_.begin(), roster_changed_.end(), false);
  stop_ = StopMode::kNone;
  stop_reason_.clear();
  job_state_ = job::JobState::kStarting;
  stalled_ = false;
  gathering_ = true;
  gather_from_ = fact.at;
  ++ends_version_;
  std::fill(counts_.begin(), counts_.end(), RoleCount{});
  for (Task& task : tasks_) {
    const bool goes_on = !task.retired && GoesOnAfterResume(task);
    task.holder.reset();
    task.released = false;
    task.unplaced_at = fact.at;
    if (goes_on) {
      task.final = task.suspended = task.recalled = task.killed = false;
      task.attempt = task.attempts;
      task.due = fact.at;
      task.end.reset();
      task.host.clear();
      task.ports.clear();
      task.state = job::TaskState::kCreated;
    }
    Count(task, 1);
  }
}

}  // namespace shoal::rendezvous
