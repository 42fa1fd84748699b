#include "framework/ranks.h"

#include "job/execution/plan.h"
#include "job/spec/framework.h"

namespace shoal::framework {

std::optional<TaskRanks> FindRanks(const job::Job& job, const ClusterDescription& cluster,
                                   const TaskContext& task) {
  TaskRanks ranks;
  bool found = false;
  const auto visit = [&](const job::Role& role, int index, const ClusterMember& member) {
    const bool own_role = role.name == task.role;
    if (ranks.leader == nullptr) ranks.leader = &member;
    if (own_role && task.index == index) {
      found = true;
      ranks.rank = ranks.size;
      ranks.role_rank = ranks.role_size;
      ranks.task_rank = ranks.tasks;
      ranks.local_size = role.processes;
    }
    ranks.size += role.processes;
    if (own_role) ranks.role_size += role.processes;
    ++ranks.tasks;
  };
  ForEachPresentTask(job, cluster, job::RankedRoles(job), visit);
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
  const auto visit = [&](const job::Role& role, int index, const ClusterMember& /*member*/) {
    if (!text.empty()) text += ' ';
    text += role.name + "-" + std::to_string(index) + ":" + std::to_string(role.processes);
  };
  ForEachPresentTask(job, cluster, roles, visit);
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
