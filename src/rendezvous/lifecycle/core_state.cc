#include "rendezvous/lifecycle/core_state.h"

#include <algorithm>

#include "base/log.h"

namespace shoal::rendezvous {

framework::ClusterDescription CoreState::Cluster() const {
  framework::ClusterDescription cluster;
  cluster.generation = generation;
  cluster.ending = ending();
  for (const job::Role& role : job.roles) {
    framework::ClusterRole described;
    described.name = role.name;
    for (const job::Port& port : role.ports) described.port_names.push_back(port.name);
    cluster.roles.push_back(std::move(described));
  }
  for (const Task& task : tasks) {
    if (!tasks.IsDescribed(task)) continue;
    framework::ClusterRole& role = cluster.roles[task.role];
    // Absent tasks before this one keep empty entries, so that an index always names one task.
    const framework::ClusterMember absent{"", std::vector<uint16_t>(role.port_names.size())};
    role.members.resize(static_cast<size_t>(task.index), absent);
    if (task.ended_well() && !task.scaled_down) role.ended.push_back(task.index);
    role.members.push_back({task.host, task.ports});
  }
  return cluster;
}

JournalRecord CoreState::RecordFor(JournalRecord::Kind kind, int task) const {
  JournalRecord record;
  record.kind = kind;
  record.task = task;
  if (task >= 0) record.attempt = tasks[task].attempt;
  return record;
}

int64_t CoreState::Record(JournalRecord record) {
  record.seq = ++seq;
  record.at = now;
  const Status applied = apply(record);
  SHOAL_CHECK(applied.ok());
  Emit(Action::Kind::kRecord).record = std::move(record);
  return seq;
}

Action& CoreState::Emit(Action::Kind kind, int task) {
  Action action;
  action.kind = kind;
  // What is done about a stall waits until its diagnostics are stored.
  if (kind == Action::Kind::kDrain || kind == Action::Kind::kKill) action.after = stall_seq;
  action.task = task;
  if (task >= 0) action.member = tasks.MemberOf(task);
  actions.push_back(std::move(action));
  return actions.back();
}

void CoreState::DecideVerdict(job::JobState state, const std::string& reason, bool did_gather) {
  if (decided) return;
  JournalRecord record = RecordFor(JournalRecord::Kind::kJob, -1);
  record.state = job::JobState::kFinishing;
  record.decided = state;
  record.text = reason;
  record.gathered = did_gather;
  record.stop = std::max(stop, StopMode::kDrain);
  Record(std::move(record));
  reevaluate = true;
}

}  // namespace shoal::rendezvous
