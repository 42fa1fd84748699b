// The internal commands `shoal slurm …`, started inside an allocation by the batch script and by
// srun:
//
//   agent DIR [AHEAD]    supervises the job's steps (agent.cc). Without AHEAD it is the batch step;
//                        with AHEAD it runs beside salloc on the controller's machine and tells the
//                        tasks to save AHEAD seconds before the time limit
//   step FILE [NUMBER]   one task of a step: starts a launcher and reports its end (step_task.cc);
//                        NUMBER: the allocation that it cancels if the agent is gone
//   exec JOB ROLE INDEX [--env NAME=VALUE]… -- COMMAND…   runs a command beside a task's program
//   pipe JOB ROLE INDEX PORT    connects standard input and output to a port of the task
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::engine::slurm {

// First output of `pipe`: connected, or refused with a sentence.
inline constexpr const char* kPipeOpen = "+";
inline const std::string kPipeRefused = "-";

// Runs `shoal slurm WORDS`; returns its exit code. InvalidArgument for unknown words.
Result<int> RunHelper(const std::vector<std::string>& words);

// Subcommands of RunHelper, each in a file of its own.
Result<int> RunAgent(const std::string& job_dir, std::optional<std::chrono::seconds> ahead);
// `number` empty: the task cancels no allocation.
Result<int> RunStepTask(const std::string& file, const std::string& number);

// The small static program beside `program` (shoal-task, cli/task_main.cc) that has the same
// internal commands and starts twice as fast; `program` itself if it does not exist.
std::string FindStaticTwin(const std::string& program);

// The environment without the variables that Slurm sets for its steps and for MPI: a program must
// not mistake its launcher's step for its own.
std::vector<std::string> WithoutSlurm(const std::vector<std::string>& environment);

// ---- Files in the job's directory, shared by engine and agent (docs/formats/slurm.md) ----

// The agent's event log (engine/agent/desired_state.h).
std::filesystem::path AgentEventsPath(const std::string& job_dir);
// The job's allocation, recorded for later engines.
std::filesystem::path AllocationPath(const std::string& job_dir);
// The batch script, with which the job is submitted again for another allocation.
std::filesystem::path BatchScriptPath(const std::string& job_dir);
// The allocation of a job.
struct Allocation {
  int64_t number = 0;     // Slurm's job id; 0: unknown
  bool attended = false;  // held by salloc on the controller's machine
};
Status WriteAllocation(const std::string& job_dir, const Allocation& allocation);
Allocation ReadAllocation(const std::string& job_dir);
// Output of the agent and of srun.
std::filesystem::path AgentLogPath(const std::string& job_dir);

}  // namespace shoal::engine::slurm
