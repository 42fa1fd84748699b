// Analyzes how a Slurm batch script starts its programs. Used by slurm_script.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/conversion/field_reader.h"
#include "import/slurm/shell_script.h"

namespace shoal::importer {

struct SlurmScriptInfo {
  std::vector<std::string> shell;  // "bash" and its options
  std::string text;                // the script without lines that only Slurm needs
  ShellScript read;
  int steps = 0;             // calls of srun
  int step_tasks = 0;        // the most tasks that a step says it has; 0: none says it as a number
  int step_per_node = 0;     // the same for the tasks of a node
  bool small = true;         // every step has one task
  bool mpirun = false;       // calls mpirun or mpiexec
  bool mpi = false;          // srun starts MPI programs
  bool torch = false;        // they are PyTorch programs or read PyTorch's variables
  bool image = false;        // srun starts them in containers
  bool reads_files = false;  // loads modules or reads files of shell commands
};

// Scripts that cannot be imported are errors in `diagnostics`.
SlurmScriptInfo AnalyzeSlurmScript(std::string_view script, Diagnostics* diagnostics);

}  // namespace shoal::importer
