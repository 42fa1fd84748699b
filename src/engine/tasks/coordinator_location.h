// Where a job's coordinator says that it listens: coordinator.json in the job's directory, for
// engines whose tasks see that directory (docs/formats).
#pragma once

#include <cstdint>
#include <string>

#include "engine/engine.h"

namespace shoal::engine {

struct CoordinatorLocation {
  Endpoint endpoint;
  int64_t pid = 0;  // as its own PID namespace numbers it
};

// Unavailable while there is no such file.
Result<CoordinatorLocation> ReadCoordinatorLocation(const std::string& job_id,
                                                    const std::string& job_dir);

}  // namespace shoal::engine
