// An end with a sentence where this process runs out of descriptors, threads or memory.
#pragma once

namespace shoal::cli {

// From now on an exception that no function catches, such as that of an event loop that gets no
// descriptor (`ulimit -n`), ends the process with code 1 and a message with the limit to raise, if
// a limit is its cause. Others abort, as without this call. Any thread may throw. Once, at the
// start.
void ExplainLimitsAtEnd();

}  // namespace shoal::cli
