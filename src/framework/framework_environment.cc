#include "framework/framework_environment.h"

#include <cctype>

#include "base/json.h"
#include "framework/cluster_references.h"
#include "framework/horovod_environment.h"
#include "framework/jax_environment.h"
#include "framework/mpi_environment.h"
#include "framework/paddle_environment.h"
#include "framework/ps_lite_environment.h"
#include "framework/pytorch_environment.h"
#include "framework/rabit_environment.h"
#include "framework/shoal_environment.h"
#include "framework/spark_environment.h"
#include "framework/tensorflow_environment.h"
#include "job/execution/plan.h"

namespace shoal::framework {
namespace {

// The registry. A new framework is one pair of files and one line here.
const FrameworkEnvironment* const* Environments(size_t* size) {
  static const ShoalEnvironment shoal;
  static const GenericEnvironment generic;
  static const TensorflowEnvironment tensorflow;
  static const PytorchEnvironment pytorch;
  static const PsLiteEnvironment ps_lite;
  static const SparkEnvironment spark;
  static const RabitEnvironment rabit;
  static const MpiEnvironment mpi;
  static const HorovodEnvironment horovod;
  static const JaxEnvironment jax;
  static const PaddleEnvironment paddle;
  static const FrameworkEnvironment* const table[] = {&shoal,   &generic, &tensorflow, &pytorch,
                                                      &ps_lite, &spark,   &rabit,      &mpi,
                                                      &horovod, &jax,     &paddle};
  *size = std::size(table);
  return table;
}

void PutUnlessEmpty(const char* name, const std::string& value, Environment* env) {
  if (!value.empty()) (*env)[name] = value;
}

// "grpc-web" → "SHOAL_PORT_GRPC_WEB".
std::string PortVariable(const std::string& port) {
  std::string name = "SHOAL_PORT_";
  for (const char c : port) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

// The default output directory, SHOAL_OUTPUT: the output named "model", or the only output.
std::string MainOutput(const job::Job& job) {
  const auto model = job.outputs.find("model");
  if (model != job.outputs.end()) return model->second;
  return job.outputs.size() == 1 ? job.outputs.begin()->second : std::string();
}

json::array DataJson(const job::Job& job) {
  json::array data;
  for (const job::DataSource& source : job.data) {
    json::array sources;
    for (const std::string& path : source.sources) sources.emplace_back(path);
    data.push_back(json::object{{"name", source.name},
                                {"sources", std::move(sources)},
                                {"format", source.format},
                                {"shard_by", source.shard_by}});
  }
  return data;
}

void AddLocalRank(int local_rank, int local_size, Environment* env) {
  (*env)["SHOAL_LOCAL_RANK"] = std::to_string(local_rank);
  (*env)["SHOAL_LOCAL_SIZE"] = std::to_string(local_size);
}

void AddCommonVariables(const job::Job& job, const ClusterDescription& cluster,
                        const ClusterRole& role, const TaskContext& task, Environment* env) {
  (*env)["SHOAL_JOB_ID"] = task.job_id;
  (*env)["SHOAL_JOB_NAME"] = job.name;
  (*env)["SHOAL_ROLE"] = task.role;
  (*env)["SHOAL_INDEX"] = std::to_string(task.index);
  (*env)["SHOAL_REPLICAS"] = std::to_string(role.members.size());
  (*env)["SHOAL_ATTEMPT"] = std::to_string(task.attempt);
  (*env)["SHOAL_GENERATION"] = std::to_string(cluster.generation);
  PutUnlessEmpty("SHOAL_TOKEN_FILE", task.token_file, env);
  PutUnlessEmpty("SHOAL_SCRATCH", task.scratch, env);
  PutUnlessEmpty("SHOAL_JOB_DIR", task.job_dir, env);
  PutUnlessEmpty("SHOAL_CLUSTER_FILE", task.cluster_file, env);
  PutUnlessEmpty("SHOAL_OUTPUT", MainOutput(job), env);
  if (!job.data.empty()) (*env)["SHOAL_DATA"] = ToText(DataJson(job));
  if (task.initial_replicas > 0)
    (*env)["SHOAL_INITIAL_REPLICAS"] = std::to_string(task.initial_replicas);
  if (task.report_fd >= 0) (*env)["SHOAL_REPORT_FD"] = std::to_string(task.report_fd);
  const ClusterMember& self = role.members[static_cast<size_t>(task.index)];
  for (size_t i = 0; i < self.ports.size() && i < role.port_names.size(); ++i) {
    if (i == 0) (*env)["SHOAL_PORT"] = std::to_string(self.ports[i]);
    (*env)[PortVariable(role.port_names[i])] = std::to_string(self.ports[i]);
  }
}

Status CheckLengths(const Environment& env) {
  for (const auto& [name, value] : env) {
    const size_t bytes = name.size() + 1 + value.size() + 1;
    if (bytes <= kMaxVariableBytes) continue;
    std::string text = "the environment variable " + name + " would take " + std::to_string(bytes) +
                       " bytes, expected at most " + std::to_string(kMaxVariableBytes);
    if (name == "SHOAL_DATA") {
      text += "; name the data by a directory or a pattern instead of file by file";
    } else {
      text += "; put the value into a file and name that";
    }
    return ResourceExhausted(std::move(text));
  }
  return Status::Ok();
}

}  // namespace

Result<const FrameworkEnvironment*> FindFrameworkEnvironment(job::Framework framework) {
  size_t size = 0;
  const FrameworkEnvironment* const* table = Environments(&size);
  std::string known;
  for (size_t i = 0; i < size; ++i) {
    if (table[i]->framework() == framework) return table[i];
    known += (known.empty() ? "" : ", ") + std::string(job::NameOf(table[i]->framework()));
  }
  return Unimplemented("framework " + std::string(job::NameOf(framework)) +
                       " is not supported yet, expected one of " + known +
                       "; with generic its programs read the SHOAL_ variables");
}

Result<Environment> RenderEnvironment(const job::Job& job, const ClusterDescription& cluster,
                                      const TaskContext& task) {
  TRY_ASSIGN(const FrameworkEnvironment* framework, FindFrameworkEnvironment(job.framework));
  const job::Role* role = job.FindRole(task.role);
  const ClusterRole* members = cluster.FindRole(task.role);
  if (role == nullptr || members == nullptr) {
    return InvalidArgument("role '" + task.role +
                           "' is not in the job and its cluster description");
  }
  if (task.index < 0 || static_cast<size_t>(task.index) >= members->members.size()) {
    return InvalidArgument(task.role + " " + std::to_string(task.index) +
                           " is not in the cluster description, which has " +
                           std::to_string(members->members.size()) + " of " + task.role);
  }
  Environment env = role->env;
  env.insert(job.env.begin(), job.env.end());
  TRY(ExpandClusterReferences(cluster, task, &env));
  AddCommonVariables(job, cluster, *members, task, &env);
  AddLocalRank(0, role->processes, &env);
  TRY(framework->AddVariables(job, cluster, task, &env));
  TRY(CheckLengths(env));
  return env;
}

Status FrameworkEnvironment::AddProcessVariables(const job::Job& /*job*/,
                                                 const ClusterDescription& /*cluster*/,
                                                 const TaskContext& /*task*/, int /*local_rank*/,
                                                 Environment* /*env*/) const {
  return Status::Ok();
}

Result<std::vector<Environment>> RenderProcesses(const job::Job& job,
                                                 const ClusterDescription& cluster,
                                                 const TaskContext& task, const Environment& env) {
  TRY_ASSIGN(const FrameworkEnvironment* framework, FindFrameworkEnvironment(job.framework));
  const job::Role* role = job.FindRole(task.role);
  if (role == nullptr) return InvalidArgument("role '" + task.role + "' is not in the job");
  std::vector<Environment> processes(1);
  if (role->processes <= 1 || !framework->StartsProcesses()) return processes;
  processes.clear();
  for (int rank = 0; rank < role->processes; ++rank) {
    Environment whole = env;
    AddLocalRank(rank, role->processes, &whole);
    TRY(framework->AddProcessVariables(job, cluster, task, rank, &whole));
    TRY(CheckLengths(whole));
    std::erase_if(whole, [&](const auto& variable) {
      const auto same = env.find(variable.first);
      return same != env.end() && same->second == variable.second;
    });
    processes.push_back(std::move(whole));
  }
  return processes;
}

void AddClusterVariable(const SerializedCluster& text, Environment* env) {
  if (text.fits_variable()) (*env)["SHOAL_CLUSTER"] = text.text();
}

}  // namespace shoal::framework
