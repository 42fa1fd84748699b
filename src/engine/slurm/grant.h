// What an salloc says of the allocation that it holds, to the agent that it holds it for. The two
// are started side by side (at_once.cc), with a socket between them: the agent's standard input is
// one end, both standard streams of salloc's command are the other. When the agent's end closes,
// the command ends, and salloc gives the allocation back.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace shoal::engine::slurm {

// A script of sh, the command of salloc: one line of what Grant has, and then nothing until the
// other end closes.
inline constexpr const char* kReportGrantScript =
    "echo \"$SLURM_JOB_ID $PPID $SLURM_JOB_NODELIST $SLURM_TASKS_PER_NODE $SLURM_SUBMIT_HOST\"; "
    "read end; exit 0";

struct Grant {
  int64_t number = 0;          // in Slurm
  int64_t salloc = 0;          // its process
  std::string nodes;           // as Slurm lists them
  std::string tasks_per_node;  // likewise
  std::string submit_host;     // may be empty
};

// Without the line feed. Checked: InvalidArgument.
Result<Grant> ParseGrant(std::string_view line);

// Reads it. Unavailable if the stream ends without one, which says nothing (salloc does, to its
// own standard error), or `patience` passes.
Result<Grant> AwaitGrant(int fd, std::chrono::milliseconds patience);

}  // namespace shoal::engine::slurm
