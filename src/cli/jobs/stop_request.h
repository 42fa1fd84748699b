// Asks a job's coordinator to end or suspend the job, independent of the process that started it,
// and waits until the end is stored. Used by `shoal stop` and `shoal suspend`.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/jobs/session.h"
#include "controller/store/job_record.h"

namespace shoal::cli {

enum class StopRequest : uint8_t { kDrain, kKill, kSuspend };

// Returns when the job has ended or is suspended, for this or an earlier reason, and its controller
// has finished its cleanup (at most 10 s). Unauthenticated; FailedPrecondition if the job can no
// longer be suspended; Cancelled by a signal.
Result<controller::JobRecord> SendStopRequest(Session* session, const std::string& id,
                                              StopRequest request, const std::string& reason);

// Continues a stopped (Ctrl-Z) controller with SIGCONT, if its process can be signalled from here.
void ContinueOwner(const controller::JobRecord& job);

// Sends SIGTERM to the job's controller, which stops the job, for a job without a coordinator.
// FailedPrecondition if the controller runs in another PID namespace or on another machine.
Status SignalOwner(const controller::JobRecord& job);

}  // namespace shoal::cli
