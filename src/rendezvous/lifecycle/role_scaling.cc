#include "rendezvous/lifecycle/role_scaling.h"

#include <utility>

#include "job/spec/elastic.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

std::string RoleScaling::ScaleRefusal(const Scale& event) const {
  const auto first = state_->tasks.Find(event.role, 0);
  if (!first) return job::ExplainMissingRole(state_->job);
  const job::Role& role = state_->tasks.role_of(*first);
  if (state_->verdict || state_->decided || state_->stop != StopMode::kNone)
    return "the job is ending";
  if (std::string why = job::ExplainResizeRefusal(role, event.replicas); !why.empty()) return why;
  for (int index = 0; index < event.replicas; ++index) {
    const int number = *first + index;
    const Task& task = state_->tasks[number];
    if (task.scaled_down && !task.final) {
      return state_->tasks.NameOf(number) + " is still leaving; ask again when it has ended";
    }
  }
  if (event.replicas > 1 && IsLostLeader(*first)) {
    return state_->tasks.NameOf(*first) +
           " is being started again and takes over all rows first; ask again when it runs";
  }
  return "";
}

bool RoleScaling::IsLostLeader(int first) const {
  const job::Role& role = state_->tasks.role_of(first);
  if (state_->gathering || !job::HoldsOnlyCopies(state_->job, role)) return false;
  for (int number = first; number < first + role.most(); ++number) {
    if (state_->tasks[number].running()) return false;
  }
  return true;
}

void RoleScaling::On(const Scale& event) {
  if (const std::string why = ScaleRefusal(event); !why.empty()) {
    state_->Emit(Kind::kNote).text = ScaleRefusalText(event.role, why);
    return;
  }
  const int first = *state_->tasks.Find(event.role, 0);
  for (int number = first; number < first + event.replicas; ++number) {
    const Task& task = state_->tasks[number];
    // The launcher of the slot's earlier task may still be connected.
    if (IsRecreatedByScale(task) && task.connected()) {
      Action& action = state_->Emit(Kind::kRefuse);
      action.member = task.launcher->member;
      action.text = state_->tasks.NameOf(number) + " is created again, with a new launcher";
      state_->tasks.Disconnect(task.launcher->member);
    }
  }
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kScale, first);
  record.replicas = event.replicas;
  record.text = event.reason;
  state_->Record(std::move(record));
  const std::string why = "the role " + event.role + " was made smaller, to " +
                          std::to_string(event.replicas) +
                          (event.replicas == 1 ? " task" : " tasks");
  for (int number = first + state_->tasks.role_of(first).most() - 1;
       number >= first + event.replicas; --number) {
    stop_->DrainTask(number, why);
  }
  state_->reevaluate = true;
}

bool RoleScaling::IsRecreatedByScale(const Task& task) {
  return task.final && (task.scaled_down || !task.ended_well());
}

void RoleScaling::ApplyScale(const JournalRecord& record) {
  const size_t role = state_->tasks[record.task].role;
  ++state_->ends_version;
  const bool together = state_->job.roles[role].restart.scope != job::RestartScope::kTask;
  for (Task& task : state_->tasks) {
    if (task.role != role) continue;
    state_->tasks.UpdateCounts(task, -1);
    if (task.index >= record.replicas) {
      if (task.running() && !task.scaled_down && together) group_->SetMembershipChanged(role, true);
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
    state_->tasks.UpdateCounts(task, 1);
  }
}

void RoleScaling::AbandonTask(int number, const std::string& why) {
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kEnded, number);
  record.end = job::Lost(why);
  state_->Record(std::move(record));
  state_->reevaluate = true;
}

void RoleScaling::On(const LauncherRefused& event) {
  const auto number = state_->tasks.Find(event.role, event.index);
  if (!number || state_->tasks[*number].final) return;
  const std::string why = "could not be started: " + event.reason +
                          exclusions_->DescribeExcludedHosts(state_->tasks[*number].role);
  if (state_->tasks.role_of(*number).elastic()) return AbandonTask(*number, why);
  state_->DecideVerdict(job::JobState::kFailed, state_->tasks.NameOf(*number) + " " + why);
}

void RoleScaling::RecreateLostServers() {
  if (state_->ending()) return;
  for (const job::Role& role : state_->job.roles) {
    if (!role.elastic() || !job::HoldsOnlyCopies(state_->job, role)) continue;
    const int first = *state_->tasks.Find(role.name, 0);
    if (!state_->tasks[first].running()) continue;  // see IsLostLeader
    int lost = -1;
    bool leaving = false;
    for (int number = first; number < first + role.most(); ++number) {
      const Task& task = state_->tasks[number];
      if (!task.scaled_down) continue;
      leaving = leaving || !task.final;
      const bool ended = task.final && task.end && task.attempts > 0;
      if (ended && !task.ended_well() && task.treatment != EndTreatment::kSuspended) lost = number;
    }
    if (lost < 0 || leaving) continue;  // a slot is created again once no other one is leaving
    On(Scale{role.name, state_->tasks.index_of(lost) + 1,
             state_->tasks.NameOf(lost) + " " + job::Describe(*state_->tasks[lost].end) +
                 ", before it had moved its rows; it is started again and stays"});
  }
}

}  // namespace shoal::rendezvous
