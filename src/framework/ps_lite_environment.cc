#include "framework/ps_lite_environment.h"

#include <algorithm>

#include "framework/ranks.h"

namespace shoal::framework {
namespace {

constexpr std::string_view kRoles[] = {"scheduler", "server", "worker"};

std::string Count(const ClusterDescription& cluster, std::string_view name) {
  const ClusterRole* role = cluster.FindRole(name);
  return std::to_string(role == nullptr ? 0 : role->members.size());
}

}  // namespace

Status PsLiteEnvironment::AddVariables(const job::Job& job, const ClusterDescription& cluster,
                                       const TaskContext& task, Environment* env) const {
  if (std::find(std::begin(kRoles), std::end(kRoles), task.role) == std::end(kRoles)) {
    return Status::Ok();
  }
  const ClusterRole* schedulers = cluster.FindRole("scheduler");
  if (schedulers == nullptr || schedulers->members.size() != 1) {
    return InvalidArgument("framework ps-lite needs one task of role scheduler");
  }
  const ClusterMember& scheduler = schedulers->members.front();
  TRY_ASSIGN(const uint16_t root, FirstPort(job, "scheduler", scheduler));
  const ClusterMember& self = cluster.FindRole(task.role)->members[static_cast<size_t>(task.index)];
  TRY_ASSIGN(const uint16_t port, FirstPort(job, task.role, self));
  (*env)["DMLC_ROLE"] = task.role;
  (*env)["DMLC_PS_ROOT_URI"] = scheduler.host;
  (*env)["DMLC_PS_ROOT_PORT"] = std::to_string(root);
  (*env)["DMLC_NUM_SERVER"] = Count(cluster, "server");
  (*env)["DMLC_NUM_WORKER"] = Count(cluster, "worker");
  // Without these two variables each process guesses its address and picks a random port.
  env->try_emplace("DMLC_NODE_HOST", self.host);
  (*env)["PORT"] = std::to_string(port);
  // In seconds. Heartbeats are off by default, so that ps-lite would never notice a dead process.
  env->try_emplace("PS_HEARTBEAT_INTERVAL", "1");
  env->try_emplace("PS_HEARTBEAT_TIMEOUT", "5");
  return Status::Ok();
}

}  // namespace shoal::framework
