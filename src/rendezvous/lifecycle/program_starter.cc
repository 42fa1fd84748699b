#include "rendezvous/lifecycle/program_starter.h"

#include <algorithm>

namespace shoal::rendezvous {

using Kind = Action::Kind;

void ProgramStarter::IssueGeneration(bool after_group_restart) {
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kGeneration, -1);
  record.restart = after_group_restart;
  record.generation = state_->generation + 1;
  framework::ClusterDescription cluster = state_->Cluster();
  cluster.generation = state_->generation + 1;
  record.body = framework::ToJson(cluster);
  state_->Record(std::move(record));
  if (state_->generation > 1) state_->Emit(Kind::kDescribe);
}

void ProgramStarter::BroadcastEnds(int64_t after) {
  const bool any = std::any_of(state_->tasks.counts().begin(), state_->tasks.counts().end(),
                               [](const RoleCount& one) { return one.well > 0; });
  if (any) state_->Emit(Kind::kDescribe).after = after;
}

bool ProgramStarter::IsStartBlocked(int number) const {
  const Task& task = state_->tasks[number];
  if (group_->Includes(task.role)) return true;
  if (exclusions_->OnExcludedHost(task)) return true;
  const job::After& after = state_->job.roles[task.role].after;
  for (const std::string& name : after.roles) {
    for (size_t r = 0; r < state_->job.roles.size(); ++r) {
      if (state_->job.roles[r].name != name) continue;
      const RoleCount& count = state_->tasks.count(r);
      const int there = after.when == job::AfterWhen::kEnded     ? 0
                        : after.when == job::AfterWhen::kStarted ? count.active
                                                                 : count.ready;
      const int missing = after.when == job::AfterWhen::kEnded ? 0 : count.missing;
      if (there + count.final < count.tasks - missing) return true;
    }
  }
  return false;
}

bool ProgramStarter::StartIfDue(int number) {
  const Task& task = state_->tasks[number];
  if (state_->gathering || task.running() || task.final || state_->stop != StopMode::kNone)
    return false;
  if (!task.launcher || !task.launcher->leased || task.launcher->member == 0 ||
      task.due > state_->now) {
    return false;
  }
  if (IsStartBlocked(number)) return false;
  state_->Record(state_->RecordFor(JournalRecord::Kind::kStarted, number));
  // A task that starts again may have been the only one that knew which tasks have ended.
  if (task.attempt > 0) BroadcastEnds(0);
  if (state_->tasks.role_of(number).elastic()) state_->reevaluate = true;  // RecreateLostServers
  state_->Emit(Kind::kStart, number).attempt = task.attempt;
  return true;
}

// A start may unblock the next role.
void ProgramStarter::StartUnblocked() {
  bool started = !state_->gathering && state_->stop == StopMode::kNone;
  while (started) {
    started = false;
    for (int number = 0; number < state_->tasks.size(); ++number) {
      if (state_->tasks.role_of(number).after.roles.empty()) continue;
      started = StartIfDue(number) || started;
    }
  }
}

void ProgramStarter::FinishGroupRestart() {
  if (!group_->pending() || state_->ending() || state_->now < *group_->due()) return;
  for (const Task& task : state_->tasks) {
    if (!group_->Includes(task.role) || task.final) continue;
    if (task.running()) return;
    const RoleCount& count = state_->tasks.count(task.role);
    const bool newcomer = state_->job.roles[task.role].elastic() && task.host.empty();
    if (newcomer && count.there >= state_->job.roles[task.role].least())
      continue;  // not waited for
    if (!task.launcher || !task.launcher->leased || task.launcher->member == 0) return;
  }
  IssueGeneration(true);
  StartAll();
}

// Tasks that start together cannot go on with other members than they began with.
void ProgramStarter::ApplyMembershipChanges() {
  if (state_->gathering || state_->ending()) return;
  bool describe = false;
  for (size_t r = 0; r < state_->job.roles.size(); ++r) {
    if (!group_->membership_changed(r)) continue;
    const job::Role& role = state_->job.roles[r];
    if (group_->Includes(r)) {
      group_->SetMembershipChanged(r, false);  // they get a new generation anyway
    } else if (role.restart.scope == job::RestartScope::kTask) {
      describe = true;
    } else {
      const bool whole = role.restart.scope == job::RestartScope::kJob;
      JournalRecord restart =
          state_->RecordFor(JournalRecord::Kind::kRestart, *state_->tasks.Find(role.name, 0));
      restart.scope = role.restart.scope;
      restart.due = state_->now;
      restart.text = "the members of " + role.name + " have changed; all tasks of " +
                     (whole ? "the job" : role.name) +
                     " are started again, which is not counted as a restart";
      const std::string text = restart.text;
      group_->RestartGroup(std::move(restart), text);
    }
  }
  if (describe) IssueGeneration();
  FinishGroupRestart();
}

void ProgramStarter::StartAll() {
  for (int number = 0; number < state_->tasks.size(); ++number) StartIfDue(number);
}

}  // namespace shoal::rendezvous
