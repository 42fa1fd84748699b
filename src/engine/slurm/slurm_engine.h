// The engine of a Slurm cluster: a job is one allocation, its tasks are steps in it.
//
// On the login node, slurm_engine.cc submits the job, polls the queue and reads the agent's event
// log. In the allocation, agent.cc starts and watches the tasks. They communicate through files in
// the job's directory, which all nodes see.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

// Plain value; `clock` outlives the engine.
struct SlurmEngineOptions {
  // Absolute path of shoal on all nodes, which run `PROGRAM slurm …` (slurm_helper.h).
  std::string program;
  const Clock* clock = RealClock::Get();
  RestartRules restart;
  // "NAME=value": environment of Slurm's commands and base of every task's environment. Empty:
  // PATH, HOME, LANG and the like of this process, and its variables for Slurm (SLURM_CONF,
  // SBATCH_…).
  std::vector<std::string> environment;
  std::vector<std::string> added_environment = {};  // replaces variables of the same names
  // Time between SIGTERM and SIGKILL of a task that Apply no longer lists.
  std::chrono::milliseconds remove_grace{10'000};
  FindJobDir job_dir;  // finds jobs of other controller processes
};

// Starts two threads. Contacts Slurm only when a method needs it.
Result<std::unique_ptr<Engine>> MakeSlurmEngine(SlurmEngineOptions options);

}  // namespace shoal::engine
