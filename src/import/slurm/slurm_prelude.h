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

// What the prelude stands in for.
struct SlurmPreludeOptions {
  SlurmStepMode steps = SlurmStepMode::kAlone;
  std::vector<int64_t> array = {};  // the indices of a job array
  int64_t array_step = 1;           // SLURM_ARRAY_TASK_STEP
  std::string signal = {};          // of --signal: "USR1" …, or empty
  bool signals_shell = false;       // --signal=B:…: the script's shell gets it, and not its steps
  int task_gpus = 0;  // GPUs of its own that each task of a step sees; 0: all of its node
  int gpu_tasks = 1;  // tasks that share these
};

// The bash text to put before the script.
std::string SlurmPrelude(const SlurmPreludeOptions& options);

}  // namespace shoal::importer
