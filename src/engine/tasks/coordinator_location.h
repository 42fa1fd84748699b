// The address that a job's coordinator publishes in coordinator.json in the job's directory, for
// engines whose tasks see that directory (docs/formats).
#pragma once

#include <cstdint>
#include <string>

#include "engine/engine.h"

namespace shoal::engine {

// Contents of coordinator.json.
struct CoordinatorLocation {
  Endpoint endpoint;
  int64_t pid = 0;  // in the coordinator's own PID namespace
};

// Unavailable while the coordinator has not written the file.
Result<CoordinatorLocation> ReadCoordinatorLocation(const std::string& job_id,
                                                    const std::string& job_dir);

// Continues a coordinator that a signal has stopped (SIGSTOP, a debugger) with SIGCONT, so that it
// hears a request. Only of engines that identify tasks by pid, in the PID namespace of the caller.
void ContinueCoordinator(const Engine& engine, const std::string& job_id,
                         const std::string& job_dir);

}  // namespace shoal::engine
