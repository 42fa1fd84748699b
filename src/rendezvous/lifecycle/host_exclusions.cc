#include "rendezvous/lifecycle/host_exclusions.h"

namespace shoal::rendezvous {

// An unknown host cannot be told apart from others: the end is then an ordinary retry.
void HostExclusions::ExcludeHostOf(int number, const std::string& why) {
  const Task& task = state_->tasks[number];
  if (!task.launcher || task.launcher->node.empty() || OnExcludedHost(task)) return;
  JournalRecord record = state_->RecordFor(JournalRecord::Kind::kExcluded, number);
  record.node = task.launcher->node;
  record.text = why;
  state_->Record(std::move(record));
}

bool HostExclusions::OnExcludedHost(const Task& task) const {
  return task.launcher && excluded_[task.role].contains(task.launcher->node);
}

std::string HostExclusions::DescribeExcludedHosts(size_t role) const {
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
  return "; excluded for role " + state_->job.roles[role].name + ": " + text;
}

Status HostExclusions::Apply(const JournalRecord& record) {
  if (record.node.empty()) return DataLoss("an exclusion without a host");
  excluded_[state_->tasks[record.task].role].emplace(record.node, record.text);
  return Status::Ok();
}

}  // namespace shoal::rendezvous
