// Hosts that are excluded: on which no program of a role is started any more, because a rule of the
// job file (EndAction::kExcludeHost) took one's end for its host's fault. What runs there goes on;
// who is to be started again leaves, and its engine makes it elsewhere.
#include <algorithm>

#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

// A host that is not known cannot be told apart from others: then it is a retry like any other.
void CoordinatorCore::ExcludeHostOf(int number, const std::string& why) {
  const Task& task = tasks_[static_cast<size_t>(number)];
  if (!task.launcher || task.launcher->node.empty() || OnExcludedHost(task)) return;
  JournalRecord record = RecordFor(JournalRecord::Kind::kExcluded, number);
  record.node = task.launcher->node;
  record.text = why;
  Record(std::move(record));
}

bool CoordinatorCore::OnExcludedHost(const Task& task) const {
  return task.launcher && excluded_[task.role].contains(task.launcher->node);
}

// The engine has been told before they go: its word and theirs wait for the same record.
void CoordinatorCore::ReleaseFromExcludedHosts() {
  if (stop_ != StopMode::kNone || decided_) return;
  for (int number = 0; number < task_count(); ++number) {
    Task& task = tasks_[static_cast<size_t>(number)];
    if (task.active || task.final || !OnExcludedHost(task)) continue;
    const std::string why = "its host " + task.launcher->node + " is excluded";
    if (task.launcher->member != 0) {
      members_.erase(task.launcher->member);
      Action& action = Emit(Kind::kRefuse);
      action.member = task.launcher->member;
      action.excluded = true;
      action.after = task.ended_seq;
      action.text = why + ": " + excluded_[task.role][task.launcher->node];
    }
    JournalRecord record = RecordFor(JournalRecord::Kind::kLauncherLost, number);
    record.text = why;
    Record(std::move(record));
    AssignWaitingLauncher(number);
  }
}

// Behind a sentence which says that a task of the role has no launcher.
std::string CoordinatorCore::DescribeExcludedHosts(size_t role) const {
  constexpr size_t kTold = 3;
  const auto& hosts = excluded_[role];
  if (hosts.empty()) return "";
  std::string text;
  size_t count = 0;
  for (const auto& [host, why] : hosts) {
    if (++count > kTold) break;
    text += (count == 1 ? "" : ", ") + host + ", because " + why;
  }
  if (hosts.size() > kTold) text += " and " + std::to_string(hosts.size() - kTold) + " others";
  return "; excluded for role " + job_.roles[role].name + ": " + text;
}

}  // namespace shoal::rendezvous
