// How far an elastic role may grow and shrink; for who changes a running job (rendezvous) and one
// that waits (controller).
#pragma once

#include <string>

#include "job/job.h"

namespace shoal::job {

// Empty if the role may have so many tasks, else why not, for people.
std::string WhyNotResized(const Role& role, int replicas);

}  // namespace shoal::job
