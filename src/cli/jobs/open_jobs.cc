#include "cli/jobs/open_jobs.h"

#include <csignal>
#include <utility>

#include "cli/jobs/engines.h"
#include "cli/jobs/load_job.h"
#include "cli/terminal/stop_signals.h"
#include "controller/jobs/embedded_jobs.h"

namespace shoal::cli {

Result<std::unique_ptr<controller::Jobs>> OpenJobs(const Context& context) {
  controller::EmbeddedJobsOptions options;
  options.program = context.program;
  TRY_ASSIGN(options.engines, ConfiguredEngines());
  options.interrupts = WithoutIgnored({SIGINT, SIGTERM, SIGHUP});
  options.validation = [](const controller::NewRun& run, const std::string& kind) {
    const bool here = controller::ReadsLocalPaths(kind, run.job);
    return ValidationOf(here ? learn::DataLocation::kLocal : learn::DataLocation::kRemote,
                        run.locations);
  };
  return controller::OpenEmbeddedJobs(std::move(options));
}

}  // namespace shoal::cli
