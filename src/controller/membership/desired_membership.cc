#include "controller/membership/desired_membership.h"

#include <algorithm>

#include "base/json.h"

namespace shoal::controller {

using Type = rendezvous::JobEvent::Type;

DesiredMembership::DesiredMembership(const job::Job* job) : job_(job) {
  for (const job::Role& role : job->roles) {
    for (int i = 0; role.elastic() && i < role.replicas; ++i) members_[role.name].insert(i);
  }
}

bool DesiredMembership::ApplyEvent(const rendezvous::JobEvent& event) {
  if (event.type == Type::kExcluded) return Exclude(event);
  const bool created = event.type == Type::kTask && event.task_state == job::TaskState::kCreated;
  if (created && event.will_restart) return replaced_.emplace(event.role, event.index).second;
  const job::Role* role = job_ == nullptr ? nullptr : job_->FindRole(event.role);
  return role != nullptr && role->elastic() && Resize(*role, event);
}

bool DesiredMembership::Resize(const job::Role& role, const rendezvous::JobEvent& event) {
  std::set<int>& members = members_[role.name];
  int& wanted = wanted_.try_emplace(role.name, role.replicas).first->second;
  if (event.type == Type::kScaled) {
    wanted = static_cast<int>(GetIntOr(event.body, "replicas", wanted));
    wanted = std::min(wanted, role.most());
    for (int i = 0; i < wanted; ++i) {
      if (members.insert(i).second) (void)UpdateExcludedHosts(role.name, i);
    }
    return true;
  }
  if (event.type != Type::kTask || !event.end || event.will_restart) return false;
  const bool failed = !event.end->ok() && event.end->kind != job::EndKind::kCancelled;
  if (event.index < wanted && !failed) return false;
  members.erase(event.index);
  return true;
}

bool DesiredMembership::Exclude(const rendezvous::JobEvent& event) {
  const std::string host = GetStringOr(event.body, "host", "");
  std::vector<std::string>& hosts = excluded_by_role_[event.role];
  if (host.empty() || std::find(hosts.begin(), hosts.end(), host) != hosts.end()) return false;
  hosts.push_back(host);
  bool changed = false;
  for (const auto& [role, index] : leaving_) {
    if (role == event.role) changed = UpdateExcludedHosts(role, index) || changed;
  }
  return changed;
}

bool DesiredMembership::ApplyEvent(const engine::TaskEvent& event) {
  const bool lost = event.phase == engine::TaskPhase::kLost;
  const bool back = replaced_.erase({event.role, event.index}) > 0;
  const bool leaves = lost && event.end.exit_code == job::kExitHostExcluded;
  if (leaves) leaving_.emplace(event.role, event.index);
  // An engine that restarts it from the last Apply needs no new one until the membership changes.
  const bool avoids = lost && (UpdateExcludedHosts(event.role, event.index) ||
                               (leaves && excluded_by_role_.contains(event.role)));
  return back || avoids;
}

bool DesiredMembership::UpdateExcludedHosts(const std::string& role, int index) {
  const auto excluded = excluded_by_role_.find(role);
  if (excluded == excluded_by_role_.end()) return false;
  std::vector<std::string>& avoided = excluded_hosts_[{role, index}];
  if (avoided == excluded->second) return false;
  avoided = excluded->second;
  return true;
}

}  // namespace shoal::controller
