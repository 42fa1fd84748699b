// Asks a job's coordinator to end or suspend it, whoever started it, and waits until that is
// stored. Used by `shoal stop` and `shoal suspend`.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/jobs/session.h"
#include "controller/store/job_record.h"

namespace shoal::cli {

enum class StopRequest : uint8_t { kDrain, kKill, kSuspend };

// Returns when the job has ended or is suspended, what was wished or what came before it, and its
// controller has removed what was left of it (10 s at most).
// Unauthenticated; FailedPrecondition if it cannot be suspended any more; Cancelled by a signal.
Result<controller::JobRecord> SendStopRequest(Session* session, const std::string& id,
                                              StopRequest request, const std::string& reason);

// Lets its controller go on if somebody has stopped it (Ctrl-Z), where it can be reached.
void ContinueOwner(const controller::JobRecord& job);

// Its controller, another process, takes it as its user's request to stop: what else is there to
// ask while there is no coordinator? FailedPrecondition if it runs in another PID namespace or on
// another machine.
Status SignalOwner(const controller::JobRecord& job);

}  // namespace shoal::cli
