// Process ranks for frameworks that number all processes of a job (pytorch, horovod, rabit, jax,
// paddle, mpi), and address helpers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/framework_environment.h"

namespace shoal::framework {

// Calls visit(role, index, member) for every present task of these roles, in rank order: role by
// role, ascending by index. Roles that the job or the cluster lacks, and absent tasks of elastic
// roles, are left out. O(tasks of the roles).
template <typename Visit>
void ForEachPresentTask(const job::Job& job, const ClusterDescription& cluster,
                        const std::vector<std::string>& roles, const Visit& visit) {
  for (const std::string& name : roles) {
    const job::Role* role = job.FindRole(name);
    const ClusterRole* members = cluster.FindRole(name);
    if (role == nullptr || members == nullptr) continue;
    for (size_t i = 0; i < members->members.size(); ++i) {
      const ClusterMember& member = members->members[i];
      if (!member.host.empty()) visit(*role, static_cast<int>(i), member);
    }
  }
}

// The ranks of one task. Tasks of job::RankedRoles are numbered in order, each with its role's
// `processes` consecutive ranks. Absent tasks of elastic roles have no ranks, so that there are no
// gaps.
struct TaskRanks {
  int rank = 0;  // of local rank 0
  int size = 0;  // processes of all tasks
  int local_size = 0;
  int task_rank = 0;  // of the task among the tasks
  int tasks = 0;
  int role_rank = 0;  // of local rank 0 among the role's processes
  int role_size = 0;
  const ClusterMember* leader = nullptr;  // the task of rank 0; lives in the cluster description
};

// The ranks of a task; nullopt if its role is not ranked or the task is not in the description.
// O(tasks of the job).
std::optional<TaskRanks> FindRanks(const job::Job& job, const ClusterDescription& cluster,
                                   const TaskContext& task);

// The first port of a task. InvalidArgument if the role has no ports, with a sentence that says the
// framework needs one.
Result<uint16_t> FirstPort(const job::Job& job, const std::string& role,
                           const ClusterMember& member);

// "worker-0:2 worker-1:2": the present tasks of these roles, each with its number of processes. The
// format of MPI and Horovod host lists.
std::string FormatSlots(const job::Job& job, const ClusterDescription& cluster,
                        const std::vector<std::string>& roles);

// True for a loopback address or "localhost".
bool IsLoopback(std::string_view host);
// True if all present tasks have loopback addresses: the whole job runs on one machine.
bool AllOnLoopback(const ClusterDescription& cluster);

}  // namespace shoal::framework
