// Converts exits of a program to job::TaskEnd. Used by attempt.cc.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "host/process/process_tree.h"
#include "job/execution/state.h"

namespace shoal::rendezvous {

// A program that could not be started ends with a shell's exit code, 127 or 126.
job::TaskEnd StartFailureEnd(const Status& why);
job::TaskEnd TaskEndOf(const host::ProcessExit& exit, int64_t memory_limit);
// Killed by the launcher, for this reason.
job::TaskEnd KilledEnd(int signal, std::string why);

}  // namespace shoal::rendezvous
