// Roles that grow and shrink: what `shoal scale` asks for, whom the job does without, and what a
// change of members leads to. The rules are in docs/design/task-lifecycle.md.
#include <algorithm>

#include "base/clock.h"
#include "job/spec/elastic.h"
#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

// ---- Scaling ------------------------------------------------------------------------------------

std::string CoordinatorCore::ScaleRefusal(const Scale& event) const {
  const auto first = Find(event.role, 0);
  if (!first) return job::ExplainMissingRole(job_);
  const job::Role& role = role_of(*first);
  if (verdict_ || decided_ || stop_ != StopMode::kNone) return "the job is ending";
  if (std::string why = job::ExplainResizeRefusal(role, event.replicas); !why.empty()) return why;
  for (int index = 0; index < event.replicas; ++index) {
    const int number = *first + index;
    const Task& task = tasks_[static_cast<size_t>(number)];
    if (task.scaled_down && !task.final) {
      return NameOf(number) + " is still leaving; ask again when it has ended";
    }
  }
  return "";
}

void CoordinatorCore::On(const Scale& event) {
  if (const std::string why = ScaleRefusal(event); !why.empty()) {
    Emit(Kind::kNote).text = std::string(kNotScaled) + event.role + ": " + why;
    return;
  }
  const int first = *Find(event.role, 0);
  for (int number = first; number < first + event.replicas; ++number) {
    const Task& task = tasks_[static_cast<size_t>(number)];
    // The launcher of its earlier life, should it still be there.
    if (IsRecreatedByScale(task) && task.launcher && task.launcher->member != 0) {
      Action& action = Emit(Kind::kRefuse);
      action.member = task.launcher->member;
      action.text = NameOf(number) + " begins anew, with a new launcher";
      members_.erase(task.launcher->member);
    }
  }
  JournalRecord record = RecordFor(JournalRecord::Kind::kScale, first);
  record.replicas = event.replicas;
  record.text = event.reason;
  Record(std::move(record));
  const std::string why = "the role " + event.role + " was made smaller, to " +
                          std::to_string(event.replicas) +
                          (event.replicas == 1 ? " task" : " tasks");
  for (int number = first + role_of(first).most() - 1; number >= first + event.replicas; --number) {
    DrainTask(number, why);
  }
  reevaluate_ = true;
}

// Its slot has nobody, or somebody who failed: whoever is asked for anew takes it.
bool CoordinatorCore::IsRecreatedByScale(const Task& task) const {
  return task.final && (task.scaled_down || !EndedWell(task));
}

void CoordinatorCore::ApplyScale(const JournalRecord& record) {
  const size_t role = tasks_[static_cast<size_t>(record.task)].role;
  ++ends_version_;
  const bool together = job_.roles[role].restart.scope != job::RestartScope::kTask;
  for (Task& task : tasks_) {
    if (task.role != role) continue;
    UpdateCounts(task, -1);
    if (task.index >= record.replicas) {
      if (task.active && !task.scaled_down && together) membership_changed_[role] = true;
      task.scaled_down = true;
    } else if (IsRecreatedByScale(task)) {
      const int attempts = task.attempts;
      const int index = task.index;
      task = Task();
      task.role = role;
      task.index = index;
      task.attempt = attempts;
      task.attempts = attempts;
      task.unassigned_since = record.at;
    }
    UpdateCounts(task, 1);
  }
}

// ---- Who is missing -----------------------------------------------------------------------------

bool CoordinatorCore::IsDescribed(const Task& task) const {
  if (!job_.roles[task.role].elastic()) return true;
  if (task.scaled_down && task.final) return false;
  return !task.host.empty() && (!task.final || EndedWell(task));
}

// Somebody may still come, but the job does not wait for it.
bool CoordinatorCore::IsOptionalAndAbsent(const Task& task) const {
  const job::Role& role = job_.roles[task.role];
  return role.elastic() && !task.final && task.host.empty() &&
         counts_[task.role].there >= role.least();
}

// Every role is whole, or has its `min` and nobody has come for a while.
bool CoordinatorCore::CanStart() const {
  if (AllLeased()) return true;
  return HasMinimumLeased() && (now_ >= last_leased_ + limits_.elastic_join_window ||
                                now_ >= gather_from_ + job_.limits.gather);
}

bool CoordinatorCore::HasMinimumLeased() const {
  for (size_t r = 0; r < job_.roles.size(); ++r) {
    const RoleCount& count = counts_[r];
    const bool enough = job_.roles[r].elastic() && count.there >= job_.roles[r].least();
    const int needless = resumes_ > 0 ? count.final : 0;
    if (count.leased + needless < count.tasks && !enough) return false;
  }
  return true;
}

// Whether the rest of the job goes on is EvaluateSuccess's business.
void CoordinatorCore::AbandonTask(int number, const std::string& why) {
  JournalRecord record = RecordFor(JournalRecord::Kind::kEnded, number);
  record.end = job::Lost(why);
  Record(std::move(record));
  reevaluate_ = true;
}

// ---- What follows -------------------------------------------------------------------------------

// All are told of a change of members by a new generation. Those whose scope says that they start
// together cannot go on with others than they began with: they are started again, which counts
// against nobody.
void CoordinatorCore::ApplyMembershipChanges() {
  if (gathering_ || stop_ != StopMode::kNone || decided_) return;
  bool describe = false;
  for (size_t r = 0; r < job_.roles.size(); ++r) {
    if (!membership_changed_[r]) continue;
    const job::Role& role = job_.roles[r];
    if (group_restart_due_ && restarting_group_[r]) {
      membership_changed_[r] = false;  // they get a new generation anyway
    } else if (role.restart.scope == job::RestartScope::kTask) {
      describe = true;
    } else {
      const bool whole = role.restart.scope == job::RestartScope::kJob;
      JournalRecord restart = RecordFor(JournalRecord::Kind::kRestart, *Find(role.name, 0));
      restart.scope = role.restart.scope;
      restart.due = now_;
      restart.text = "the members of " + role.name + " have changed; all tasks of " +
                     (whole ? "the job" : role.name) +
                     " are started again, which counts against nobody";
      const std::string text = restart.text;
      RestartGroup(std::move(restart), text);
    }
  }
  if (describe) IssueGeneration();
  FinishGroupRestart();
}

}  // namespace shoal::rendezvous
