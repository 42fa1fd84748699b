// Numbers for the frameworks whose processes are numbered through (pytorch, horovod, rabit, mpi),
// and addresses as a framework's programs read them.
#pragma once

#include <optional>

#include "framework/framework_environment.h"

namespace shoal::framework {

// Where the first process of one task stands among those of the job::RankedRoles. Every task has
// its role's `processes`, with ranks next to each other; a task that is not there (elastic roles)
// has none, so that ranks have no gaps.
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

// Nothing for a task that has no rank: of another role, or not in the description.
std::optional<TaskRanks> FindRanks(const job::Job& job, const ClusterDescription& cluster,
                                   const TaskContext& task);

// The member's first port; InvalidArgument if it has none, which says that the framework needs one.
Result<uint16_t> FirstPort(const job::Job& job, const std::string& role,
                           const ClusterMember& member);

// "worker-0:2 worker-1:2": the tasks of these roles that are there, each with its role's
// `processes`.
std::string FormatSlots(const job::Job& job, const ClusterDescription& cluster,
                        const std::vector<std::string>& roles);

// True for addresses of this machine alone.
bool IsLoopback(std::string_view host);
// True if everybody of the job is at one.
bool AllOnLoopback(const ClusterDescription& cluster);

}  // namespace shoal::framework
