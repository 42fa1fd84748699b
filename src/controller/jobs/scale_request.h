// Asks a job's coordinator for another number of tasks of a role, independent of the process that
// started the job.
#pragma once

#include <string>

#include "base/status.h"
#include "rendezvous/client/coordinator_client.h"

namespace shoal::controller {

// Returns the coordinator's answer: OK once it has accepted the number; FailedPrecondition with the
// reason why not; Unavailable after 10 s without an answer. `options`: of an observer.
Status SendScaleRequest(rendezvous::CoordinatorClientOptions options, const std::string& role,
                        int replicas);

}  // namespace shoal::controller
