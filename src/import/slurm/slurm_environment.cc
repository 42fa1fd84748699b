#include "import/slurm/slurm_environment.h"

#include <algorithm>

namespace shoal::importer {
namespace {

// Set by every shell, by Shoal, or by the prelude (SLURMD_NODENAME).
constexpr std::string_view kKnown[] = {"HOME",       "USER",
                                       "PWD",        "OLDPWD",
                                       "PATH",       "SHELL",
                                       "HOSTNAME",   "RANDOM",
                                       "SECONDS",    "UID",
                                       "LANG",       "TMPDIR",
                                       "TERM",       "IFS",
                                       "LOGNAME",    "RANK",
                                       "REPLY",      "LD_LIBRARY_PATH",
                                       "PYTHONPATH", "EUID",
                                       "PPID",       "OPTARG",
                                       "OPTIND",     "CUDA_VISIBLE_DEVICES",
                                       "WORLD_SIZE", "LINENO",
                                       "LOCAL_RANK", "MASTER_ADDR",
                                       "FUNCNAME",   "MASTER_PORT",
                                       "PIPESTATUS", "SLURMD_NODENAME"};

// Those of Slurm's variables that are set where sbatch or srun sets them.
constexpr std::string_view kOfSlurm[] = {"SLURM_JOB_ID",
                                         "SLURM_JOBID",
                                         "SLURM_JOB_NAME",
                                         "SLURM_SUBMIT_DIR",
                                         "SLURM_TMPDIR",
                                         "SLURM_NODEID",
                                         "SLURM_LOCALID",
                                         "SLURM_PROCID",
                                         "SLURM_NNODES",
                                         "SLURM_NTASKS",
                                         "SLURM_JOB_NUM_NODES",
                                         "SLURM_NPROCS",
                                         "SLURM_JOB_NODELIST",
                                         "SLURM_NODELIST",
                                         "SLURM_STEP_NUM_TASKS",
                                         "SLURM_STEP_ID",
                                         "SLURM_STEP_NODELIST",
                                         "SLURM_STEP_NUM_NODES",
                                         "SLURM_CPUS_PER_TASK",
                                         "SLURM_NTASKS_PER_NODE",
                                         "SLURM_TASKS_PER_NODE",
                                         "SLURM_CPUS_ON_NODE",
                                         "SLURM_JOB_CPUS_PER_NODE",
                                         "SLURM_GPUS",
                                         "SLURM_GPUS_ON_NODE",
                                         "SLURM_GPUS_PER_NODE",
                                         "SLURM_GPUS_PER_TASK",
                                         "SLURM_MEM_PER_CPU",
                                         "SLURM_MEM_PER_GPU",
                                         "SLURM_MEM_PER_NODE",
                                         "SLURM_JOB_PARTITION",
                                         "SLURM_JOB_ACCOUNT",
                                         "SLURM_JOB_QOS",
                                         "SLURM_RESTART_COUNT"};

template <size_t n>
bool IsIn(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

void Add(std::string* list, const std::string& name) {
  *list += (list->empty() ? "" : ", ") + name;
}

}  // namespace

std::map<std::string, std::string> SlurmVariables(const SlurmAllocation& allocation) {
  std::map<std::string, std::string> variables;
  const auto set = [&](const char* name, int64_t value) {
    if (value > 0) variables[name] = std::to_string(value);
  };
  // "4", or "4(x2)" for two nodes.
  const auto set_by_node = [&](const char* name, int64_t value) {
    if (value <= 0) return;
    const std::string nodes = std::to_string(allocation.nodes);
    variables[name] = std::to_string(value) + (allocation.nodes > 1 ? "(x" + nodes + ")" : "");
  };
  set("SLURM_CPUS_PER_TASK", allocation.cpus);
  set("SLURM_NTASKS_PER_NODE", allocation.per_node);
  const int of_node = allocation.node_gpus > 0
                          ? allocation.node_gpus
                          : allocation.task_gpus * std::max(1, allocation.per_node);
  set("SLURM_GPUS_ON_NODE", of_node);
  set("SLURM_GPUS_PER_NODE", of_node);
  set("SLURM_GPUS_PER_TASK", allocation.task_gpus);
  set("SLURM_GPUS", allocation.gpus);
  set("SLURM_MEM_PER_CPU", allocation.cpu_bytes >> 20);
  set("SLURM_MEM_PER_GPU", allocation.gpu_bytes >> 20);
  set("SLURM_MEM_PER_NODE", allocation.node_bytes >> 20);
  set("SLURM_CPUS_ON_NODE", allocation.node_cpus);
  set_by_node("SLURM_JOB_CPUS_PER_NODE", allocation.node_cpus);
  const int nodes = std::max(1, allocation.nodes);
  if (allocation.tasks % nodes == 0) set_by_node("SLURM_TASKS_PER_NODE", allocation.tasks / nodes);
  return variables;
}

MissingVariables FindMissingVariables(const ShellScript& script, bool array) {
  MissingVariables missing;
  for (const std::string& name : script.used) {
    if (script.assigned.contains(name) || name.starts_with("BASH") || IsIn(kKnown, name)) continue;
    if (!name.starts_with("SLURM_")) {
      Add(&missing.of_shell, name);
    } else if (!IsIn(kOfSlurm, name) && !(array && name.starts_with("SLURM_ARRAY_"))) {
      Add(&missing.of_slurm, name);
    }
  }
  return missing;
}

}  // namespace shoal::importer
