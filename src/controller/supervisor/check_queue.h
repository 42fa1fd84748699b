// Whether the queue that a job names exists.
#pragma once

#include <optional>

#include "base/status.h"
#include "job/spec/job.h"
#include "queue/policy/policy.h"

namespace shoal::controller {

// InvalidArgument for a queue that the policy does not have, or that takes no jobs.
Status CheckQueue(const std::optional<queue::Policy>& queues, const job::Job& job);

}  // namespace shoal::controller
