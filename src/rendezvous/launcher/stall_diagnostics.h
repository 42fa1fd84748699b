// What the processes of a stalled task are doing: the body of the message "evidence"
// (docs/formats/rendezvous.md). Used by attempt.cc.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/json.h"

namespace shoal::rendezvous {

// At most so many entries per task are listed; the rest is counted.
inline constexpr size_t kMaxReportedProcesses = 16;
inline constexpr size_t kMaxReportedConnections = 32;

// Lists processes with state and wait channel, and connections with their peers; at most about 8
// KiB. Cost: see host/process/process_activity.h.
json::object CollectStallDiagnostics(const std::vector<pid_t>& pids);

}  // namespace shoal::rendezvous
