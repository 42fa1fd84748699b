#include "cli/jobs/open_jobs.h"

#include <csignal>
#include <utility>

#include "api/client/login_file.h"
#include "api/client/remote_jobs.h"
#include "cli/jobs/engines.h"
#include "cli/jobs/load_job.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stop_signals.h"
#include "controller/jobs/embedded_jobs.h"

namespace shoal::cli {

Result<std::unique_ptr<controller::Jobs>> OpenJobs(const Context& context) {
  TRY_ASSIGN(const std::optional<api::Login> login, api::ChooseServer(context.server));
  if (login) {
    api::RemoteJobsOptions remote;
    remote.on_note = [](const std::string& sentence) { PrintNote(sentence); };
    remote.interrupts = WithoutIgnored({SIGINT, SIGTERM, SIGHUP});
    return api::MakeRemoteJobs(*login, std::move(remote));
  }
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

Result<std::unique_ptr<api::ApiClient>> OpenServer(const Context& context, std::string_view what) {
  TRY_ASSIGN(const std::optional<api::Login> login, api::ChooseServer(context.server));
  if (login) return api::ApiClient::Make(*login);
  return FailedPrecondition(std::string(what) +
                            " belong to a server; name it with --server, or sign in with `shoal "
                            "login`");
}

}  // namespace shoal::cli
