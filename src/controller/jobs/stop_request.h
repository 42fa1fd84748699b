// Asks a job's coordinator to end or suspend the job, independent of the process that started it,
// and waits until the end is stored. Used by `shoal stop` and `shoal suspend`.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "controller/jobs/session.h"
#include "controller/store/job_record.h"

namespace shoal::controller {

enum class StopRequest : uint8_t { kDrain, kKill, kSuspend };

// Returns when the job has ended or is suspended, for this or an earlier reason, and its controller
// has finished its cleanup (at most 10 s). Unauthenticated; FailedPrecondition if the job can no
// longer be suspended; Cancelled by one of `signals`.
Result<JobRecord> SendStopRequest(Session* session, const std::string& id, StopRequest request,
                                  const std::string& reason, const std::vector<int>& signals);

// Continues a stopped (Ctrl-Z) controller with SIGCONT, if its process can be signalled from here.
void ContinueOwner(const JobRecord& job);

// Sends SIGTERM to the job's controller, which stops the job, for a job without a coordinator.
// FailedPrecondition if the controller runs in another PID namespace or on another machine, or is a
// server with other jobs.
Status SignalOwner(const StateHome& home, const JobRecord& job);

}  // namespace shoal::controller
