#include "framework/jax_environment.h"

#include "framework/ranks.h"

namespace shoal::framework {
namespace {

void AddProcess(const TaskRanks& ranks, int local_rank, Environment* env) {
  const std::string id = std::to_string(ranks.rank + local_rank);
  (*env)["PROCESS_ID"] = id;
  (*env)["JAX_PROCESS_ID"] = id;
}

}  // namespace

Status JaxEnvironment::AddVariables(const job::Job& job, const ClusterDescription& cluster,
                                    const TaskContext& task, Environment* env) const {
  const auto ranks = FindRanks(job, cluster, task);
  if (!ranks) return Status::Ok();
  TRY_ASSIGN(const uint16_t port, FirstPort(job, task.role, *ranks->leader));
  const std::string& host = ranks->leader->host;
  const std::string count = std::to_string(ranks->size);
  (*env)["COORDINATOR_ADDRESS"] = host;
  (*env)["COORDINATOR_PORT"] = std::to_string(port);
  (*env)["NUM_PROCESSES"] = count;
  (*env)["JAX_COORDINATOR_ADDRESS"] = FormatAddress(host, port);
  (*env)["JAX_NUM_PROCESSES"] = count;
  AddProcess(*ranks, 0, env);
  env->try_emplace("PYTHONUNBUFFERED", "1");
  return Status::Ok();
}

Status JaxEnvironment::AddProcessVariables(const job::Job& job, const ClusterDescription& cluster,
                                           const TaskContext& task, int local_rank,
                                           Environment* env) const {
  const auto ranks = FindRanks(job, cluster, task);
  if (ranks) AddProcess(*ranks, local_rank, env);
  return Status::Ok();
}

}  // namespace shoal::framework
