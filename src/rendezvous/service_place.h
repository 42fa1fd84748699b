// Where a launcher finds its coordinator: in the job's directory, and where the file is not seen
// there (yet), by the SRV record that the engine has named in kServiceVariable (ADR 95).
#pragma once

#include <string>

#include "base/status.h"
#include "rendezvous/link.h"

namespace shoal::rendezvous {

// "_coordinator._coordinator-x-shoal._tcp.marathon.mesos@10.0.0.1:53": the name, and who is asked
// (net/srv.h).
inline constexpr const char* kServiceVariable = "SHOAL_COORDINATOR_SERVICE";

// Blocks for at most a second, where the record is asked for. Errors are ReadCoordinatorFile's,
// with what became of the record.
Result<CoordinatorAddress> FindCoordinator(const std::string& job_dir);

}  // namespace shoal::rendezvous
