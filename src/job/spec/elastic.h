// Limits for resizing an elastic role. The coordinator applies them to a running job, the
// controller to a job that waits in the queue.
#pragma once

#include <string>

#include "job/spec/job.h"

namespace shoal::job {

// Sentence for a role name that the job does not have; lists the roles of the job.
std::string ExplainMissingRole(const Job& job);
// Sentence that says why the role cannot have `replicas` tasks; empty if it can.
std::string ExplainResizeRefusal(const Role& role, int replicas);
// Whether the role's tasks are Shoal's parameter servers and each row has one copy: the rows of a
// server that ends without having moved them are nowhere else. O(1).
bool HoldsOnlyCopies(const Job& job, const Role& role);

}  // namespace shoal::job
