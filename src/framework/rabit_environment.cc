#include "framework/rabit_environment.h"

#include <algorithm>

#include "framework/ranks.h"
#include "job/spec/framework.h"

namespace shoal::framework {
namespace {

int CountProcesses(const job::Job& job, const ClusterDescription& cluster) {
  int processes = 0;
  ForEachPresentTask(job, cluster, job::RankedRoles(job),
                     [&](const job::Role& role, int /*index*/, const ClusterMember& /*member*/) {
                       processes += role.processes;
                     });
  return processes;
}

}  // namespace

Status RabitEnvironment::AddVariables(const job::Job& job, const ClusterDescription& cluster,
                                      const TaskContext& task, Environment* env) const {
  const auto ranks = FindRanks(job, cluster, task);
  if (!ranks && task.role != "tracker") return Status::Ok();
  const ClusterRole* trackers = cluster.FindRole("tracker");
  if (trackers == nullptr || trackers->members.size() != 1) {
    return InvalidArgument("framework rabit needs one task of role tracker");
  }
  const ClusterMember& tracker = trackers->members.front();
  TRY_ASSIGN(const uint16_t port, FirstPort(job, "tracker", tracker));
  (*env)["DMLC_TRACKER_URI"] = tracker.host;
  (*env)["DMLC_TRACKER_PORT"] = std::to_string(port);
  (*env)["DMLC_NUM_WORKER"] = std::to_string(CountProcesses(job, cluster));
  (*env)["DMLC_NUM_SERVER"] = "0";
  if (!ranks) return Status::Ok();
  (*env)["DMLC_ROLE"] = "worker";
  (*env)["DMLC_TASK_ID"] = std::to_string(ranks->rank);
  (*env)["DMLC_NUM_ATTEMPT"] = std::to_string(std::max(task.attempt - 1, 0));
  return Status::Ok();
}

Status RabitEnvironment::AddProcessVariables(const job::Job& job, const ClusterDescription& cluster,
                                             const TaskContext& task, int local_rank,
                                             Environment* env) const {
  const auto ranks = FindRanks(job, cluster, task);
  if (ranks) (*env)["DMLC_TASK_ID"] = std::to_string(ranks->rank + local_rank);
  return Status::Ok();
}

}  // namespace shoal::framework
