// What runs inside an allocation, as `shoal slurm …`; started by the batch script and by sruns, not
// by people:
//
//   agent DIR [AHEAD]    holds the job's steps (agent.cc): as the batch step; with AHEAD under an
//                        salloc on the controller's machine, and so many seconds before the
//                        allocation's time is over the tasks save
//   step FILE [NUMBER]   one task of a step: starts a launcher, tells how it ends (step_task.cc);
//                        NUMBER: of the allocation that it gives back if the agent is gone
//   exec JOB ROLE INDEX [--env NAME=VALUE]… -- COMMAND…   a command beside a task's program
//   pipe JOB ROLE INDEX PORT                              its port, at standard input and output
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::engine::slurm {

// What `pipe` says first: one of these, the second with a sentence after it.
inline constexpr const char* kPipeOpen = "+";
inline const std::string kPipeRefused = "-";

// What `shoal slurm WORDS` does; gives its exit code. InvalidArgument for other words.
Result<int> RunHelper(const std::vector<std::string>& words);

// RunHelper's, each in a file of its own.
Result<int> RunAgent(const std::string& job_dir, std::optional<std::chrono::seconds> ahead);
// `number`: empty: none.
Result<int> RunStepTask(const std::string& file, const std::string& number);

// The small static program that lies beside `program` (shoal-task, cli/task_main.cc) and knows all
// this, too, but starts twice as fast; `program` if there is none.
std::string FindStaticTwin(const std::string& program);

// The environment without what Slurm says to its own and to MPI: programs must not take their
// launcher's step for theirs.
std::vector<std::string> WithoutSlurm(const std::vector<std::string>& environment);

// ---- What engine and agent share: files of the job's directory (docs/formats/slurm.md) ----

// agent → engine: what became of the tasks (engine/agent/desired_state.h).
std::filesystem::path AgentEventsPath(const std::string& job_dir);
// engine or agent → a later engine: the job's allocation.
std::filesystem::path AllocationPath(const std::string& job_dir);
// The batch script: what Slurm is asked for when the job is to go on in another allocation.
std::filesystem::path BatchScriptPath(const std::string& job_dir);
struct Allocation {
  int64_t number = 0;     // in Slurm; 0: none is known
  bool attended = false;  // an salloc holds it, on the controller's machine
};
Status WriteAllocation(const std::string& job_dir, const Allocation& allocation);
Allocation ReadAllocation(const std::string& job_dir);
// What the agent and the sruns themselves said.
std::filesystem::path AgentLogPath(const std::string& job_dir);

}  // namespace shoal::engine::slurm
