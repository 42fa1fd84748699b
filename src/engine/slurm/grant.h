// How salloc reports its allocation to the agent. Both are started together
// (immediate_allocation.cc) with a socket between them: one end is the agent's standard input, the
// other one standard input and output of salloc's command. When the agent's end closes, the command
// ends and salloc releases the allocation.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace shoal::engine::slurm {

// The shell script that salloc runs: it prints the fields of Grant as one line and then waits until
// the other end closes.
inline constexpr const char* kReportGrantScript =
    "echo \"$SLURM_JOB_ID $PPID $SLURM_JOB_NODELIST $SLURM_TASKS_PER_NODE $SLURM_SUBMIT_HOST\"; "
    "read end; exit 0";

// A granted allocation, as salloc's environment describes it.
struct Grant {
  int64_t number = 0;          // Slurm's job id
  int64_t salloc = 0;          // pid of salloc
  std::string nodes;           // in Slurm's list syntax
  std::string tasks_per_node;  // in Slurm's list syntax
  std::string submit_host;     // may be empty
};

// Parses a line without its line feed. InvalidArgument names the wrong field.
Result<Grant> ParseGrant(std::string_view line);

// Reads the line. Unavailable if the stream ends without one (salloc prints the reason on its own
// standard error) or if `patience` passes.
Result<Grant> AwaitGrant(int fd, std::chrono::milliseconds patience);

}  // namespace shoal::engine::slurm
