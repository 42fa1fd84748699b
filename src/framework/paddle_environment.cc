#include "framework/paddle_environment.h"

#include "framework/ranks.h"
#include "job/spec/framework.h"

namespace shoal::framework {
namespace {

// The addresses of all tasks in rank order, for programs that are not started by Paddle's launcher.
Result<std::string> Endpoints(const job::Job& job, const ClusterDescription& cluster) {
  std::string list;
  for (const std::string& name : job::RankedRoles(job)) {
    const ClusterRole* members = cluster.FindRole(name);
    if (members == nullptr) continue;
    for (const ClusterMember& member : members->members) {
      if (member.host.empty()) continue;
      TRY_ASSIGN(const uint16_t port, FirstPort(job, name, member));
      list += (list.empty() ? "" : ",") + FormatAddress(member.host, port);
    }
  }
  return list;
}

}  // namespace

Status PaddleEnvironment::AddVariables(const job::Job& job, const ClusterDescription& cluster,
                                       const TaskContext& task, Environment* env) const {
  const auto ranks = FindRanks(job, cluster, task);
  if (!ranks) return Status::Ok();
  TRY_ASSIGN(const uint16_t port, FirstPort(job, task.role, *ranks->leader));
  (*env)["PADDLE_MASTER"] = FormatAddress(ranks->leader->host, port);
  (*env)["PADDLE_NNODES"] = std::to_string(ranks->tasks);
  (*env)["PADDLE_JOB_ID"] = job.name;
  env->try_emplace("PYTHONUNBUFFERED", "1");
  // A job with a master is a parameter-server job in Paddle's sense: each task is one server or one
  // trainer.
  if (job.FindRole("master") != nullptr) {
    (*env)[task.role == "master" ? "PADDLE_SERVER_NUM" : "PADDLE_TRAINER_NUM"] = "1";
    return Status::Ok();
  }
  const ClusterRole& own = *cluster.FindRole(task.role);
  const ClusterMember& self = own.members[static_cast<size_t>(task.index)];
  TRY_ASSIGN(const uint16_t own_port, FirstPort(job, task.role, self));
  TRY_ASSIGN((*env)["PADDLE_TRAINER_ENDPOINTS"], Endpoints(job, cluster));
  (*env)["PADDLE_CURRENT_ENDPOINT"] = FormatAddress(self.host, own_port);
  (*env)["PADDLE_TRAINER_ID"] = std::to_string(ranks->task_rank);
  (*env)["PADDLE_TRAINERS_NUM"] = std::to_string(ranks->tasks);
  return Status::Ok();
}

}  // namespace shoal::framework
