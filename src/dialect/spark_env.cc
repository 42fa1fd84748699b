#include "dialect/spark_env.h"

#include <algorithm>
#include <cmath>

#include "dialect/ranks.h"

namespace shoal::dialect {
namespace {

constexpr int64_t kMiB = 1 << 20;

// `prefix`_PORT and, where the role has a second port, `prefix`_WEBUI_PORT.
Status AddPorts(const job::Job& job, const std::string& role, const Member& self,
                const std::string& prefix, Environment* env) {
  TRY_ASSIGN(const uint16_t port, FirstPort(job, role, self));
  (*env)[prefix + "_PORT"] = std::to_string(port);
  if (self.ports.size() > 1) (*env)[prefix + "_WEBUI_PORT"] = std::to_string(self.ports[1]);
  return Status::Ok();
}

}  // namespace

Status SparkDialect::AddVariables(const job::Job& job, const ClusterDescription& cluster,
                                  const TaskContext& task, Environment* env) const {
  const ClusterRole* masters = cluster.FindRole("master");
  if (masters == nullptr || masters->members.size() != 1) {
    return InvalidArgument("framework spark needs one task of role master");
  }
  const Member& master = masters->members.front();
  TRY_ASSIGN(const uint16_t port, FirstPort(job, "master", master));
  const Member& self = cluster.FindRole(task.role)->members[static_cast<size_t>(task.index)];
  (*env)["MASTER"] = "spark://" + Address(master.host, port);
  env->try_emplace("SPARK_LOCAL_IP", self.host);
  if (task.role == "master") {
    (*env)["SPARK_MASTER_HOST"] = master.host;
    return AddPorts(job, task.role, self, "SPARK_MASTER", env);
  }
  if (task.role != "worker") return Status::Ok();
  TRY(AddPorts(job, task.role, self, "SPARK_WORKER", env));
  // Without these each worker would offer the whole machine.
  const job::Resources& resources = job.FindRole(task.role)->resources;
  if (resources.cpu > 0) {
    const int cores = std::max(1, static_cast<int>(std::floor(resources.cpu)));
    env->try_emplace("SPARK_WORKER_CORES", std::to_string(cores));
  }
  if (resources.memory_bytes > 0) {
    env->try_emplace("SPARK_WORKER_MEMORY",
                     std::to_string(std::max<int64_t>(resources.memory_bytes / kMiB, 1)) + "m");
  }
  return Status::Ok();
}

}  // namespace shoal::dialect
