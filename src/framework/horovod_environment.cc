#include "framework/horovod_environment.h"

#include "framework/ranks.h"
#include "job/spec/framework.h"

namespace shoal::framework {
namespace {

// Horovod's cross group: the processes with the same local rank, one for each task that has that
// many processes.
struct Cross {
  int rank = 0;
  int size = 0;
};

Cross CrossOf(const job::Job& job, const ClusterDescription& cluster, const TaskContext& task,
              int local_rank) {
  Cross cross;
  const auto visit = [&](const job::Role& role, int index, const ClusterMember& /*member*/) {
    if (role.processes <= local_rank) return;
    if (role.name == task.role && index == task.index) cross.rank = cross.size;
    ++cross.size;
  };
  ForEachPresentTask(job, cluster, job::RankedRoles(job), visit);
  return cross;
}

void AddRank(const job::Job& job, const ClusterDescription& cluster, const TaskContext& task,
             const TaskRanks& ranks, int local_rank, Environment* env) {
  const Cross cross = CrossOf(job, cluster, task, local_rank);
  (*env)["HOROVOD_RANK"] = std::to_string(ranks.rank + local_rank);
  (*env)["HOROVOD_LOCAL_RANK"] = std::to_string(local_rank);
  (*env)["HOROVOD_CROSS_RANK"] = std::to_string(cross.rank);
  (*env)["HOROVOD_CROSS_SIZE"] = std::to_string(cross.size);
}

}  // namespace

Status HorovodEnvironment::AddVariables(const job::Job& job, const ClusterDescription& cluster,
                                        const TaskContext& task, Environment* env) const {
  const auto ranks = FindRanks(job, cluster, task);
  if (!ranks && task.role != "rendezvous") return Status::Ok();
  const ClusterRole* stores = cluster.FindRole("rendezvous");
  if (stores == nullptr || stores->members.size() != 1)
    return InvalidArgument("framework horovod needs one task of role rendezvous");
  const ClusterMember& store = stores->members.front();
  TRY_ASSIGN(const uint16_t port, FirstPort(job, "rendezvous", store));
  (*env)["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = store.host;
  (*env)["HOROVOD_GLOO_RENDEZVOUS_PORT"] = std::to_string(port);
  if (!ranks) {
    (*env)["SHOAL_HOROVOD_HOSTS"] = FormatSlots(job, cluster, job::RankedRoles(job));
    return Status::Ok();
  }
  (*env)["HOROVOD_CONTROLLER"] = "gloo";
  (*env)["HOROVOD_CPU_OPERATIONS"] = "gloo";
  (*env)["HOROVOD_SIZE"] = std::to_string(ranks->size);
  (*env)["HOROVOD_LOCAL_SIZE"] = std::to_string(ranks->local_size);
  // The name of the local group. Each task is a group of its own, even if several tasks share a
  // machine.
  (*env)["HOROVOD_HOSTNAME"] = task.role + "-" + std::to_string(task.index);
  if (AllOnLoopback(cluster)) env->try_emplace("HOROVOD_GLOO_IFACE", "lo");
  if (ranks->local_size > 1) env->try_emplace("OMP_NUM_THREADS", "1");
  AddRank(job, cluster, task, *ranks, 0, env);
  return Status::Ok();
}

Status HorovodEnvironment::AddProcessVariables(const job::Job& job,
                                               const ClusterDescription& cluster,
                                               const TaskContext& task, int local_rank,
                                               Environment* env) const {
  const auto ranks = FindRanks(job, cluster, task);
  if (ranks) AddRank(job, cluster, task, *ranks, local_rank, env);
  return Status::Ok();
}

}  // namespace shoal::framework
