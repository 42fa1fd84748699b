// Where a launcher finds its coordinator: in the job's directory, and where the file is not seen
// there (yet), by the SRV record that the engine has named in kCoordinatorServiceVariable (ADR 95).
#pragma once

#include <string>

#include "base/status.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::rendezvous {

// "_coordinator._coordinator-x-shoal._tcp.marathon.mesos@10.0.0.1:53": the name, and who is asked
// (net/srv_record.h).
inline constexpr const char* kCoordinatorServiceVariable = "SHOAL_COORDINATOR_SERVICE";

// Blocks for at most a second, where the record is asked for. Errors are ReadCoordinatorFile's,
// with what became of the record.
Result<CoordinatorAddress> FindCoordinator(const std::string& job_dir);

}  // namespace shoal::rendezvous
