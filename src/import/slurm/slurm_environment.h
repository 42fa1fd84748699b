// The variables that sbatch gives a script, and which of those that a script uses are missing here.
// Used by slurm_script.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "import/slurm/shell_script.h"

namespace shoal::importer {

// What the options of a script ask for. 0 means not given. Plain data.
struct SlurmAllocation {
  int nodes = 0;
  int tasks = 0;
  int per_node = 0;  // tasks of a node
  int cpus = 0;      // of a task
  int64_t node_cpus = 0;
  int gpus = 0;       // of the job
  int node_gpus = 0;  // of a node
  int task_gpus = 0;  // of a task
  int64_t cpu_bytes = 0;
  int64_t gpu_bytes = 0;
  int64_t node_bytes = 0;
};

// The variables that depend on the allocation alone, by name. Memory is in MiB.
std::map<std::string, std::string> SlurmVariables(const SlurmAllocation& allocation);

struct MissingVariables {
  std::string of_shell;  // "A, B": which the submitting shell may have had
  std::string of_slurm;  // which sbatch or srun sets
};

// `array`: the job has array indices.
MissingVariables FindMissingVariables(const ShellScript& script, bool array);

}  // namespace shoal::importer
