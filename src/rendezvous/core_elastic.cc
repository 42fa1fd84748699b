// Roles that grow and shrink: what `shoal scale` asks for, whom the job does without, and what a
// change of members leads to. The rules are in docs/design/task-lifecycle.md.
#include <algorithm>

#include "base/clock.h"
#include "job/elastic.h"
#include "rendezvous/coordinator_core.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

// ---- Scaling ------------------------------------------------------------------------------------

std::string CoordinatorCore::WhyNotScaled(const Scale& event) const {
  const auto first = Find(event.role, 0);
  if (!first) return job::WhyNoSuchRole(job_);
  const job::Role& role = role_of(*first);
  if (verdict_ || decided_ || stop_ != StopMode::kNone) return "the job is ending";
  if (std::string why = job::WhyNotResized(role, event.replicas); !why.empty()) return why;
  for (int index = 0; index < event.replicas; ++index) {
    const int number = *first + index;
    const Task& task = tasks_[static_cast<size_t>(number)];
    if (task.retired && !task.final) {
      return NameOf(number) + " is still leaving; ask again when it has ended";
    }
  }
  return "";
}

void CoordinatorCore::On(const Scale& event) {
  if (const std::string why = WhyNotScaled(event); !why.empty()) {
    Do(Kind::kNote).text = std::string(kNotScaled) + event.role + ": " + why;
    return;
  }
  const int first = *Find(event.role, 0);
  for (int number = first; number < first + event.replicas; ++number) {
    const Task& task = tasks_[static_cast<size_t>(number)];
    // The launcher of its earlier life, should it still be there.
    if (Revives(task) && task.holder && task.holder->member != 0) {
      Action& action = Do(Kind::kRefuse);
      action.member = task.holder->member;
      action.text = NameOf(number) + " begins anew, with a new launcher";
      members_.erase(task.holder->member);
    }
  }
  Fact fact = FactOf(Fact::Kind::kScale, first);
  fact.replicas = event.replicas;
  fact.text = event.reason;
  Record(std::move(fact));
  const std::string why = "the role " + event.role + " was made smaller, to " +
                          std::to_string(event.replicas) +
                          (event.replicas == 1 ? " task" : " tasks");
  for (int number = first + role_of(first).most() - 1; number >= first + event.replicas; --number) {
    DrainTask(number, why);
  }
  unsettled_ = true;
}

// Its slot has nobody, or somebody who failed: whoever is asked for anew takes it.
bool CoordinatorCore::Revives(const Task& task) const {
  return task.final && (task.retired || !EndedWell(task));
}

void CoordinatorCore::ApplyScale(const Fact& fact) {
  const size_t role = tasks_[static_cast<size_t>(fact.task)].role;
  ++ends_version_;
  const bool together = job_.roles[role].restart.scope != job::RestartScope::kTask;
  for (Task& task : tasks_) {
    if (task.role != role) continue;
    Count(task, -1);
    if (task.index >= fact.replicas) {
      if (task.active && !task.retired && together) roster_changed_[role] = true;
      task.retired = true;
    } else if (Revives(task)) {
      const int attempts = task.attempts;
      const int index = task.index;
      task = Task();
      task.role = role;
      task.index = index;
      task.attempt = attempts;
      task.attempts = attempts;
      task.unplaced_at = fact.at;
    }
    Count(task, 1);
  }
}

// ---- Who is missing -----------------------------------------------------------------------------

bool CoordinatorCore::IsDescribed(const Task& task) const {
  if (!job_.roles[task.role].elastic()) return true;
  if (task.retired && task.final) return false;
  return !task.host.empty() && (!task.final || EndedWell(task));
}

// Somebody may still come, but the job does not wait for it.
bool CoordinatorCore::NobodyYet(const Task& task) const {
  const job::Role& role = job_.roles[task.role];
  return role.elastic() && !task.final && task.host.empty() &&
         counts_[task.role].there >= role.least();
}

// Every role is whole, or has its `min` and nobody has come for a while.
bool CoordinatorCore::MayBegin() const {
  if (AllLeased()) return true;
  return EnoughLeased() &&
         (now_ >= last_leased_ + limits_.last_call || now_ >= gather_from_ + job_.limits.gather);
}

bool CoordinatorCore::EnoughLeased() const {
  for (size_t r = 0; r < job_.roles.size(); ++r) {
    const RoleCount& count = counts_[r];
    const bool enough = job_.roles[r].elastic() && count.there >= job_.roles[r].least();
    const int needless = resumes_ > 0 ? count.final : 0;
    if (count.leased + needless < count.tasks && !enough) return false;
  }
  return true;
}

// Whether the rest of the job goes on is Judge's business.
void CoordinatorCore::GiveUp(int number, const std::string& why) {
  Fact fact = FactOf(Fact::Kind::kEnded, number);
  fact.end = job::Lost(why);
  Record(std::move(fact));
  unsettled_ = true;
}

// ---- What follows -------------------------------------------------------------------------------

// All are told of a change of members by a new generation. Those whose scope says that they start
// together cannot go on with others than they began with: they are started again, which counts
// against nobody.
void CoordinatorCore::FollowRoster() {
  if (gathering_ || stop_ != StopMode::kNone || decided_) return;
  bool describe = false;
  for (size_t r = 0; r < job_.roles.size(); ++r) {
    if (!roster_changed_[r]) continue;
    const job::Role& role = job_.roles[r];
    if (regroup_due_ && regrouping_[r]) {
      roster_changed_[r] = false;  // they get a new generation anyway
    } else if (role.restart.scope == job::RestartScope::kTask) {
      describe = true;
    } else {
      const bool whole = role.restart.scope == job::RestartScope::kJob;
      Fact restart = FactOf(Fact::Kind::kRestart, *Find(role.name, 0));
      restart.scope = role.restart.scope;
      restart.due = now_;
      restart.text = "the members of " + role.name + " have changed; all tasks of " +
                     (whole ? "the job" : role.name) +
                     " are started again, which counts against nobody";
      const std::string text = restart.text;
      Regroup(std::move(restart), text);
    }
  }
  if (describe) IssueGeneration();
  FinishRegroup();
}

}  // namespace shoal::rendezvous
