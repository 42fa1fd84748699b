// How far an elastic role may grow and shrink; for who changes a running job (rendezvous) and one
// that waits (controller).
#pragma once

#include <string>

#include "job/spec/job.h"

namespace shoal::job {

// Why a role of that name cannot be resized: the job has none; it names those that there are.
std::string ExplainMissingRole(const Job& job);
// Empty if the role may have so many tasks, else why not, for people.
std::string ExplainResizeRefusal(const Role& role, int replicas);

}  // namespace shoal::job
