// What the processes of a task that stands still are doing, as the launcher tells it and as it is
// kept: the body of the message "diagnostics" (docs/formats/rendezvous.md). Used by attempt.cc.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/json.h"

namespace shoal::rendezvous {

// So many of each are told of one task; the rest is counted.
inline constexpr size_t kMaxReportedProcesses = 16;
inline constexpr size_t kMaxReportedConnections = 32;

// Processes with their states and wait channels, connections with their peers; at most about 8 KiB.
// Costs what host/process/process_activity.h says.
json::object CollectStallDiagnostics(const std::vector<pid_t>& pids);

}  // namespace shoal::rendezvous
