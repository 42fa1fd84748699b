#include "framework/ranks.h"

#include "job/execution/plan.h"
#include "job/spec/framework.h"

namespace shoal::framework {

std::optional<TaskRanks> FindRanks(const job::Job& job, const ClusterDescription& cluster,
                                   const TaskContext& task) {
  TaskRanks ranks;
  bool found = false;
  for (const std::string& name : job::RankedRoles(job)) {
    const job::Role* role = job.FindRole(name);
    const ClusterRole* members = cluster.FindRole(name);
    if (role == nullptr || members == nullptr) continue;
    const bool mine = name == task.role;
    for (size_t i = 0; i < members->members.size(); ++i) {
      const ClusterMember& member = members->members[i];
      if (member.host.empty()) continue;
      if (ranks.leader == nullptr) ranks.leader = &member;
      if (mine && static_cast<size_t>(task.index) == i) {
        found = true;
        ranks.rank = ranks.size;
        ranks.role_rank = ranks.role_size;
        ranks.task_rank = ranks.tasks;
        ranks.local_size = role->processes;
      }
      ranks.size += role->processes;
      if (mine) ranks.role_size += role->processes;
      ++ranks.tasks;
    }
  }
  if (!found) return std::nullopt;
  return ranks;
}

Result<uint16_t> FirstPort(const job::Job& job, const std::string& role,
                           const ClusterMember& member) {
  if (!member.ports.empty()) return member.ports.front();
  return InvalidArgument("role " + role + " has no port, and framework " +
                         std::string(job::NameOf(job.framework)) +
                         " needs one: leave out its `ports`, or name one");
}

std::string FormatSlots(const job::Job& job, const ClusterDescription& cluster,
                        const std::vector<std::string>& roles) {
  std::string text;
  for (const std::string& name : roles) {
    const job::Role* role = job.FindRole(name);
    const ClusterRole* members = cluster.FindRole(name);
    if (role == nullptr || members == nullptr) continue;
    for (size_t i = 0; i < members->members.size(); ++i) {
      if (members->members[i].host.empty()) continue;
      if (!text.empty()) text += ' ';
      text += name + "-" + std::to_string(i) + ":" + std::to_string(role->processes);
    }
  }
  return text;
}

bool IsLoopback(std::string_view host) {
  return host.starts_with("127.") || host == "localhost" || host == "::1";
}

bool AllOnLoopback(const ClusterDescription& cluster) {
  for (const ClusterRole& role : cluster.roles) {
    for (const ClusterMember& member : role.members) {
      if (!member.host.empty() && !IsLoopback(member.host)) return false;
    }
  }
  return true;
}

}  // namespace shoal::framework
