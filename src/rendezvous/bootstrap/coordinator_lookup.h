// How a launcher finds its coordinator: by DIR/coordinator.json, else by the SRV record that the
// engine names in kCoordinatorServiceVariable (ADR 95).
#pragma once

#include <string>

#include "base/status.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::rendezvous {

// "NAME@HOST:PORT", for instance
// "_coordinator._coordinator-x-shoal._tcp.marathon.mesos@10.0.0.1:53": the record and the name
// server that is asked for it (net/srv_record.h).
inline constexpr const char* kCoordinatorServiceVariable = "SHOAL_COORDINATOR_SERVICE";

// Blocks for at most one second if the record is needed. Errors are those of ReadCoordinatorFile,
// with the outcome of the SRV lookup.
Result<CoordinatorAddress> FindCoordinator(const std::string& job_dir);

}  // namespace shoal::rendezvous
