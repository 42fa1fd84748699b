// Fault points: named places where a test, or SHOAL_FAULTS in a child's environment, makes the
// world fail.
//
// SHOAL_FAULTS="file.write=ENOSPC@3;ps.checkpoint=kill@1" fails the third pass of one point with
// ENOSPC and kills the process with SIGKILL at the first pass of another. Costs one relaxed load
// where no fault is set.
#pragma once

#include <string_view>

#include "base/status.h"

namespace shoal {

// OK, or the error that was set for this point; does not return where "kill" was set.
Status FaultPoint(std::string_view name);

// Replaces all faults by those of `spec` (the syntax above; empty clears). InvalidArgument on bad
// syntax. Thread-safe.
Status SetFaults(std::string_view spec);

}  // namespace shoal
