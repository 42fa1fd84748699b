// The engine of a cluster under Slurm: a job is one ordinary allocation, its tasks are steps in it.
//
// What runs on the login node (slurm_engine.cc) submits, asks the queue and reads; what runs in the
// allocation (agent.cc) starts and watches. They meet in the job's directory, which all nodes see.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

struct SlurmEngineOptions {
  // Absolute path of shoal, at which all nodes find it; `PROGRAM slurm …` is slurm/inside.h.
  std::string program;
  const Clock* clock = RealClock::Get();
  RestartRules restart;
  // "NAME=value": of Slurm's commands, and what every task's environment begins with. Empty: PATH,
  // HOME, LANG and the like of this process, and what it says to Slurm (SLURM_CONF, SBATCH_…).
  std::vector<std::string> environment;
  // Between SIGTERM and SIGKILL of a task that Apply no longer names.
  std::chrono::milliseconds remove_grace{10'000};
  FindJobDir job_dir;  // of jobs that this engine has not been told of by Adopt
};

// Starts two threads. Asks Slurm for nothing yet.
Result<std::unique_ptr<Engine>> MakeSlurmEngine(SlurmEngineOptions options);

}  // namespace shoal::engine
