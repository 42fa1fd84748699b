// What a batch script of Slurm says by itself of how it runs. Used by slurm_script.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/conversion/field_reader.h"
#include "import/slurm/shell_script.h"

namespace shoal::importer {

struct SlurmScriptInfo {
  std::vector<std::string> shell;  // "bash" and its options
  std::string text;                // without the lines that are only Slurm's
  ShellScript read;
  int steps = 0;        // of srun
  bool small = true;    // each of them is of one task
  bool mpirun = false;  // or mpiexec
  bool mpi = false;     // srun starts MPI's programs
  bool torch = false;   // they are PyTorch's, or look for its variables
  bool image = false;   // srun starts them in containers
};

// What cannot be imported is an error.
SlurmScriptInfo AnalyzeSlurmScript(std::string_view script, Diagnostics* diagnostics);

}  // namespace shoal::importer
