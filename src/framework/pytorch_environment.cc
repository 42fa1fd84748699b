#include "framework/pytorch_environment.h"

#include <algorithm>

#include "framework/ranks.h"
#include "job/text/units.h"

namespace shoal::framework {
namespace {

constexpr int kMostProcesses = 1024;  // of one task

void AddRanks(const TaskRanks& ranks, int local_rank, Environment* env) {
  (*env)["LOCAL_RANK"] = std::to_string(local_rank);
  (*env)["RANK"] = std::to_string(ranks.rank + local_rank);
  (*env)["ROLE_RANK"] = std::to_string(ranks.role_rank + local_rank);
}

// Defaults for a torchrun in the task's command, started directly or by a shell, used where its
// flags leave something open: one agent for each task, with PET_NPROC_PER_NODE processes.
void AddTorchrun(const TaskRanks& ranks, Environment* env) {
  const std::string& host = (*env)["MASTER_ADDR"];
  const std::string& port = (*env)["MASTER_PORT"];
  (*env)["PET_NNODES"] = std::to_string(ranks.tasks);
  (*env)["PET_NODE_RANK"] = std::to_string(ranks.task_rank);
  (*env)["PET_MASTER_ADDR"] = host;
  (*env)["PET_MASTER_PORT"] = port;
  env->try_emplace("PET_RDZV_ENDPOINT", host + ":" + port);
  env->try_emplace("PET_NPROC_PER_NODE", std::to_string(ranks.local_size));
}

// The number of processes that a task's own torchrun starts: the job's PET_NPROC_PER_NODE if Shoal
// starts one process for each task, else 1. As in Kubeflow, WORLD_SIZE then counts processes and
// RANK counts tasks.
int OwnProcesses(const TaskRanks& ranks, const Environment& env) {
  const auto said = env.find("PET_NPROC_PER_NODE");
  if (ranks.local_size != 1 || said == env.end()) return 1;
  const auto number = job::ParseInteger(said->second);
  return number && *number >= 1 && *number <= kMostProcesses ? static_cast<int>(*number) : 1;
}

}  // namespace

Status PytorchEnvironment::AddVariables(const job::Job& job, const ClusterDescription& cluster,
                                        const TaskContext& task, Environment* env) const {
  const auto ranks = FindRanks(job, cluster, task);
  if (!ranks) return Status::Ok();
  TRY_ASSIGN(const uint16_t port, FirstPort(job, task.role, *ranks->leader));
  (*env)["MASTER_ADDR"] = ranks->leader->host;
  (*env)["MASTER_PORT"] = std::to_string(port);
  AddRanks(*ranks, 0, env);
  (*env)["WORLD_SIZE"] = std::to_string(ranks->size * OwnProcesses(*ranks, *env));
  AddTorchrun(*ranks, env);
  (*env)["LOCAL_WORLD_SIZE"] = std::to_string(ranks->local_size);
  (*env)["GROUP_RANK"] = std::to_string(ranks->task_rank);
  (*env)["GROUP_WORLD_SIZE"] = std::to_string(ranks->tasks);
  (*env)["ROLE_NAME"] = task.role;
  (*env)["ROLE_WORLD_SIZE"] = std::to_string(ranks->role_size);
  (*env)["TORCHELASTIC_RUN_ID"] = task.job_id;
  (*env)["TORCHELASTIC_RESTART_COUNT"] = std::to_string(std::max(task.attempt - 1, 0));
  (*env)["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(job.FindRole(task.role)->restart.limit);
  // Rank 0 serves the store: there is no agent.
  (*env)["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  // Defaults that torchrun sets too; values of the job take precedence.
  env->try_emplace("NCCL_ASYNC_ERROR_HANDLING", "1");
  env->try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (ranks->local_size > 1) env->try_emplace("OMP_NUM_THREADS", "1");
  return Status::Ok();
}

Status PytorchEnvironment::AddProcessVariables(const job::Job& job,
                                               const ClusterDescription& cluster,
                                               const TaskContext& task, int local_rank,
                                               Environment* env) const {
  const auto ranks = FindRanks(job, cluster, task);
  if (ranks) AddRanks(*ranks, local_rank, env);
  return Status::Ok();
}

}  // namespace shoal::framework
