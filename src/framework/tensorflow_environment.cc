#include "framework/tensorflow_environment.h"

#include <algorithm>

#include "framework/ranks.h"

namespace shoal::framework {
namespace {

// In the order of TF_CONFIG.
constexpr std::string_view kRoles[] = {"chief", "master", "worker", "ps", "evaluator"};

bool IsTensorflowRole(std::string_view role) {
  return std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles);
}

// True for an elastic worker role, where TF_CONFIG is sparse: each task knows only the tasks that
// it talks to, and workers are given by index, not as a list.
bool IsDynamic(const job::Job& job) {
  const job::Role* worker = job.FindRole("worker");
  return worker != nullptr && worker->min_replicas && *worker->min_replicas < worker->replicas;
}

int CountTasks(const ClusterDescription& cluster) {
  size_t tasks = 0;
  for (const ClusterRole& role : cluster.roles) {
    if (IsTensorflowRole(role.name)) tasks += role.members.size();
  }
  return static_cast<int>(tasks);
}

Result<json::value> Addresses(const job::Job& job, const ClusterRole& role) {
  json::array list;
  list.reserve(role.members.size());
  for (const ClusterMember& member : role.members) {
    TRY_ASSIGN(const uint16_t port, FirstPort(job, role.name, member));
    list.emplace_back(FormatAddress(member.host, port));
  }
  return json::value(std::move(list));
}

// {"3": "host:port"}: the present tasks, or only task `only` (−1: all).
Result<json::value> SparseAddresses(const job::Job& job, const ClusterRole& role, int only) {
  json::object object;
  for (size_t i = 0; i < role.members.size(); ++i) {
    const ClusterMember& member = role.members[i];
    if (member.host.empty() || (only >= 0 && static_cast<size_t>(only) != i)) continue;
    TRY_ASSIGN(const uint16_t port, FirstPort(job, role.name, member));
    object[std::to_string(i)] = FormatAddress(member.host, port);
  }
  return json::value(std::move(object));
}

// One role as `task` sees it; null if it must not see the role.
Result<json::value> RoleFor(const job::Job& job, const ClusterRole& role, const TaskContext& task) {
  // The evaluator runs no server: a task that connects to every address, like the coordinator of a
  // ParameterServerStrategy, would wait for it forever.
  if (role.name == "evaluator" && task.role != "evaluator") return json::value();
  if (!IsDynamic(job)) return Addresses(job, role);
  const bool own = role.name == task.role;
  if (role.name == "worker") {
    if (task.role == "ps") return json::value(json::object());
    return SparseAddresses(job, role, own ? task.index : -1);
  }
  if (role.name == "ps" && own) return SparseAddresses(job, role, task.index);
  return Addresses(job, role);
}

}  // namespace

Status TensorflowEnvironment::AddVariables(const job::Job& job, const ClusterDescription& cluster,
                                           const TaskContext& task, Environment* env) const {
  if (!IsTensorflowRole(task.role)) return Status::Ok();
  // The port lease keeps the port bound while TensorFlow binds it too.
  env->try_emplace("TF_GRPC_REUSE_PORT", "1");
  // A job of one task is not distributed.
  if (CountTasks(cluster) == 1) return Status::Ok();
  json::object roles;
  for (const std::string_view name : kRoles) {
    const ClusterRole* role = cluster.FindRole(name);
    if (role == nullptr || role->members.empty()) continue;
    TRY_ASSIGN(json::value addresses, RoleFor(job, *role, task));
    if (!addresses.is_null()) roles[name] = std::move(addresses);
  }
  json::object config;
  config["cluster"] = std::move(roles);
  config["task"] = json::object{{"type", task.role}, {"index", task.index}};
  if (!IsDynamic(job)) config["environment"] = "cloud";
  (*env)["TF_CONFIG"] = ToText(config);
  return Status::Ok();
}

}  // namespace shoal::framework
