// The shell prelude that stands in for Slurm in an imported batch script: variables, srun,
// scontrol. Used by slurm_script.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::importer {

// How the commands of srun are started.
enum class SlurmStepMode : uint8_t {
  kAlone,   // the script runs once and starts them itself
  kRanked,  // each task of the job is one task of srun
  kTorch,   // as kRanked; torchrun gets the job's own rendezvous address
  kMpi,     // by mpirun on the workers
};

// The bash text to put before the script. `array`: the indices of a job array.
std::string SlurmPrelude(SlurmStepMode steps, const std::vector<int64_t>& array);

}  // namespace shoal::importer
