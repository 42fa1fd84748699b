#include "rendezvous/lifecycle/group_restart.h"

#include <algorithm>

namespace shoal::rendezvous {

using Kind = Action::Kind;

bool GroupRestart::InScope(const Task& task, job::RestartScope scope, size_t role) {
  return scope == job::RestartScope::kJob ||
         (scope == job::RestartScope::kRole && task.role == role);
}

void GroupRestart::RestartGroup(JournalRecord restart, const std::string& why) {
  const job::RestartScope scope = restart.scope;
  const size_t role = state_->tasks[restart.task].role;
  const Millis grace = restart.port_conflict ? std::min(state_->job.limits.stop_grace,
                                                        state_->limits.port_conflict_grace)
                                             : state_->job.limits.stop_grace;
  state_->Record(std::move(restart));
  for (int other = 0; other < state_->tasks.size(); ++other) {
    const Task& task = state_->tasks[other];
    if (!task.running() || task.drains_for_restart() || task.scaled_down ||
        !InScope(task, scope, role))
      continue;
    JournalRecord drain = state_->RecordFor(JournalRecord::Kind::kDraining, other);
    drain.text = why;
    drain.restart = true;
    drain.due = state_->now + grace;
    state_->Record(std::move(drain));
    Action& action = state_->Emit(Kind::kDrain, other);
    action.attempt = task.attempt;
    action.grace = grace;
    action.text = why;
  }
}

// Every task of the scope starts again, including tasks that ended well or were stopped: the others
// may need them. Tasks that failed for good stay out.
void GroupRestart::ApplyRestart(const JournalRecord& record) {
  const size_t role = state_->tasks[record.task].role;
  if (record.port_conflict)
    state_->tasks[record.task].unassigned_since = record.at;  // leases again
  due_ = std::max(due_.value_or(record.due), record.due);
  for (Task& task : state_->tasks) {
    if (!InScope(task, record.scope, role)) continue;
    restarting_[task.role] = true;
    membership_changed_[task.role] = false;
    const bool revived = task.final && !task.scaled_down && task.end &&
                         (task.ended_well() || task.end->kind == job::EndKind::kCancelled);
    if (!revived) continue;
    ++state_->ends_version;
    state_->tasks.UpdateCounts(task, -1);
    task.final = false;
    task.released = false;
    ++task.attempt;
    task.due = record.due;
    task.unassigned_since = record.at;
    task.state = !task.launcher          ? job::TaskState::kCreated
                 : task.launcher->leased ? job::TaskState::kJoined
                                         : job::TaskState::kCreated;
    state_->tasks.UpdateCounts(task, 1);
  }
}

void GroupRestart::ApplyGeneration(const JournalRecord& record) {
  std::fill(membership_changed_.begin(), membership_changed_.end(), false);
  if (!record.restart) return;
  due_.reset();
  std::fill(restarting_.begin(), restarting_.end(), false);
}

void GroupRestart::ApplyResumed() {
  due_.reset();
  std::fill(restarting_.begin(), restarting_.end(), false);
  std::fill(membership_changed_.begin(), membership_changed_.end(), false);
}

}  // namespace shoal::rendezvous
