// Stacks of a usual size where `ulimit -s` allows only small ones. Used by main functions.
#pragma once

#include <functional>

namespace shoal {

// Calls `run` and returns its result. If the stack limit of this process is below 8 MiB, `run` has
// a thread with a stack of that size, and so has every thread that is started from now on; the
// limit itself, which programs inherit, stays. Signals are handled as before.
int RunWithStack(const std::function<int()>& run);

}  // namespace shoal
