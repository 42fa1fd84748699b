// What the shell of an imported batch script has in place of Slurm: variables, srun, scontrol.
// Used by slurm_script.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::importer {

// How srun's commands are started.
enum class SlurmStepMode : uint8_t {
  kAlone,   // the script runs once, and they with it
  kRanked,  // in each task, which is one of srun's
  kTorch,   // likewise, and torchrun's options name the tasks' own rendezvous
  kMpi,     // by mpirun, whose hosts are the workers
};

// Text for before the script, for bash. `array`: the numbers of the tasks of an array.
std::string SlurmPrelude(SlurmStepMode steps, const std::vector<int64_t>& array);

}  // namespace shoal::importer
