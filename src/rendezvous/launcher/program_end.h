// How a program's end is told. Used by attempt.cc.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "host/process/process_tree.h"
#include "job/execution/state.h"

namespace shoal::rendezvous {

// What could not be started ends as a shell would say it: 127 or 126.
job::TaskEnd StartFailureEnd(const Status& why);
job::TaskEnd TaskEndOf(const host::ProcessExit& exit, int64_t memory_limit);
// By us, and why.
job::TaskEnd KilledEnd(int signal, std::string why);

}  // namespace shoal::rendezvous
