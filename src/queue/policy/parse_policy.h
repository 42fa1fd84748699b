// Reads a policy from its file (YAML, docs/queue.md) with the checks of a job file: every problem
// has a line, a column and what was expected.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "queue/policy/policy.h"

namespace shoal::queue {

// Parses and validates `text`; messages call it `file`. InvalidArgument holds up to ten errors, one
// per line, in the file's order:
//   policy.yaml:7:13: queues.vision.parent: got 'reserch', expected a queue of this file; did you
//   mean 'research'?
Result<Policy> ParsePolicy(std::string_view text, const std::string& file);

// The reference of the fields for docs/queue.md, from the same table.
std::string PolicyReference();

}  // namespace shoal::queue
