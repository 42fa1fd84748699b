#include "framework/shoal_environment.h"

#include <fmt/format.h>

namespace shoal::framework {
namespace {

json::object LearnJson(const job::Job& job) {
  json::object learn;
  for (const auto& [key, value] : job.learn) learn[key] = value.text;
  return learn;
}

json::object OutputsJson(const job::Job& job) {
  json::object outputs;
  for (const auto& [name, directory] : job.outputs) outputs[name] = directory;
  return outputs;
}

json::object CheckpointJson(const job::Job& job, const TaskContext& task) {
  json::object checkpoint{{"every_ms", job.checkpoint.every.count()},
                          {"keep", job.checkpoint.keep}};
  if (!task.checkpoint_dir.empty()) checkpoint["directory"] = task.checkpoint_dir;
  return checkpoint;
}

}  // namespace

Status ShoalEnvironment::AddVariables(const job::Job& job, const ClusterDescription& /*cluster*/,
                                      const TaskContext& task, Environment* env) const {
  (*env)["SHOAL_LEARN"] = ToText(LearnJson(job));
  env->try_emplace("SHOAL_DATA", "[]");
  (*env)["SHOAL_OUTPUTS"] = ToText(OutputsJson(job));
  (*env)["SHOAL_CHECKPOINT"] = ToText(CheckpointJson(job, task));
  const job::Role* const role = job.FindRole(task.role);
  if (role != nullptr && role->resources.cpu > 0)
    (*env)["SHOAL_CPUS"] = fmt::format("{}", role->resources.cpu);
  return Status::Ok();
}

// The tasks of a generic job may include parameter servers (`shoal ps-server`).
Status GenericEnvironment::AddVariables(const job::Job& job, const ClusterDescription& /*cluster*/,
                                        const TaskContext& task, Environment* env) const {
  if (job.checkpoint.every.count() > 0)
    (*env)["SHOAL_CHECKPOINT"] = ToText(CheckpointJson(job, task));
  return Status::Ok();
}

}  // namespace shoal::framework
