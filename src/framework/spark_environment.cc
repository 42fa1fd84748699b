#include "framework/spark_environment.h"

#include <algorithm>
#include <cmath>

#include "framework/ranks.h"

namespace shoal::framework {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kOwnMiB = 1024;
constexpr int64_t kLeastMiB = 480;
constexpr int64_t kUsualMiB = 1024;

// `prefix`_PORT and, where the role has a second port, `prefix`_WEBUI_PORT.
Status AddPorts(const job::Job& job, const std::string& role, const ClusterMember& self,
                const std::string& prefix, Environment* env) {
  TRY_ASSIGN(const uint16_t port, FirstPort(job, role, self));
  (*env)[prefix + "_PORT"] = std::to_string(port);
  if (self.ports.size() > 1) (*env)[prefix + "_WEBUI_PORT"] = std::to_string(self.ports[1]);
  return Status::Ok();
}

// The memory for the executors of a worker with memory limit `limit` (MiB). The worker's own JVM
// and the executors' overhead need the rest: 1 GiB, as Spark itself reserves, or half of a small
// limit; executors get at least kLeastMiB.
int64_t ExecutorsMiB(int64_t limit) {
  const int64_t own = std::min(kOwnMiB, limit / 2);
  return std::max<int64_t>({limit - own, std::min(kLeastMiB, limit * 3 / 4), 1});
}

void AddMemory(int64_t limit, Environment* env) {
  const int64_t executors = ExecutorsMiB(limit);
  env->try_emplace("SPARK_WORKER_MEMORY", std::to_string(executors) + "m");
  // The worker's own heap, 1 GiB by default.
  const int64_t heap = std::max<int64_t>((limit - executors) / 2, 1);
  env->try_emplace("SPARK_DAEMON_MEMORY", std::to_string(heap) + "m");
}

// Limits the executors to what a worker offers. With the default of 1 GiB they would wait forever
// for a worker that has less.
void AddExecutors(const job::Role& worker, Environment* env) {
  if (worker.resources.memory_bytes == 0) return;
  const int64_t executors = ExecutorsMiB(worker.resources.memory_bytes / kMiB);
  if (executors < kUsualMiB)
    env->try_emplace("SPARK_EXECUTOR_MEMORY", std::to_string(executors) + "m");
}

}  // namespace

Status SparkEnvironment::AddVariables(const job::Job& job, const ClusterDescription& cluster,
                                      const TaskContext& task, Environment* env) const {
  const ClusterRole* masters = cluster.FindRole("master");
  if (masters == nullptr || masters->members.size() != 1) {
    return InvalidArgument("framework spark needs one task of role master");
  }
  const ClusterMember& master = masters->members.front();
  TRY_ASSIGN(const uint16_t port, FirstPort(job, "master", master));
  const ClusterMember& self = cluster.FindRole(task.role)->members[static_cast<size_t>(task.index)];
  (*env)["MASTER"] = "spark://" + FormatAddress(master.host, port);
  env->try_emplace("SPARK_LOCAL_IP", self.host);
  if (task.role == "master") {
    (*env)["SPARK_MASTER_HOST"] = master.host;
    return AddPorts(job, task.role, self, "SPARK_MASTER", env);
  }
  if (task.role != "worker") {
    AddExecutors(*job.FindRole("worker"), env);
    return Status::Ok();
  }
  TRY(AddPorts(job, task.role, self, "SPARK_WORKER", env));
  // Without these variables each worker offers the whole machine.
  const job::Resources& resources = job.FindRole(task.role)->resources;
  if (resources.cpu > 0) {
    const int cores = std::max(1, static_cast<int>(std::floor(resources.cpu)));
    env->try_emplace("SPARK_WORKER_CORES", std::to_string(cores));
  }
  if (resources.memory_bytes > 0) AddMemory(resources.memory_bytes / kMiB, env);
  return Status::Ok();
}

}  // namespace shoal::framework
