// What runs inside an allocation, as `shoal slurm …`; started by the batch script and by sruns, not
// by people:
//
//   agent DIR                     the batch step: holds the job's steps (agent.cc)
//   step FILE                     one task of a step: starts a launcher, tells how it ends
//   (step_task.cc) exec JOB ROLE INDEX [--terminal R C] -- COMMAND…   a command beside a task's
//   program pipe JOB ROLE INDEX PORT      its port, at standard input and output
#pragma once

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
Result<int> RunAgent(const std::string& job_dir);
Result<int> RunStepTask(const std::string& file);

// The environment without what Slurm says to its own and to MPI: programs must not take their
// launcher's step for theirs.
std::vector<std::string> WithoutSlurm(const std::vector<std::string>& environment);

}  // namespace shoal::engine::slurm
