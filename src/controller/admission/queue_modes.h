// The modes of queues that operators have set.
#pragma once

#include <map>
#include <string>

#include "queue/policy/policy.h"

namespace shoal::controller {

// Queues that operators hold or drain, beside what the policy says.
using QueueModes = std::map<std::string, queue::QueueMode>;

}  // namespace shoal::controller
