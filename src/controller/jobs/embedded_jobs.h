// Jobs of this machine's state directory, without a server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/engines/engine_registry.h"
#include "controller/jobs/jobs.h"
#include "controller/run/validate_job.h"

namespace shoal::controller {

struct EmbeddedJobsOptions {
  std::string program;                       // absolute path of shoal
  std::vector<EngineInstance> engines = {};  // empty: one of each kind
  std::vector<int> interrupts = {};          // signals that end Stop and Suspend with Cancelled
  // Checks of a new job that this room cannot make (validate_job.h), for this kind of engine.
  std::function<JobValidation(const NewRun& run, const std::string& kind)> validation = {};
};

// Opens the store, recovers jobs of dead controllers and prunes expired records. Errors are those
// of the store.
Result<std::unique_ptr<Jobs>> OpenEmbeddedJobs(EmbeddedJobsOptions options);

}  // namespace shoal::controller
