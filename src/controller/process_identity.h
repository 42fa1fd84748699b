// Whether the process that owned a job still lives.
#pragma once

#include "base/status.h"
#include "controller/types.h"

namespace shoal::controller {

// Of the calling process.
Result<ProcessIdentity> CurrentProcess();
// False once it is gone, was of an earlier boot, or its pid belongs to another process by now.
// A zombie counts as gone.
bool IsAlive(const ProcessIdentity& process);

}  // namespace shoal::controller
