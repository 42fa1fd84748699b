// `shoal coordinator --job-dir DIR [--seed DIR --listen HOST:PORT]`: the coordinator of one job.
// Started by engines, not by people, hence hidden.

#include "rendezvous/coordinator/coordinator.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/log.h"
#include "cli/internal/internal_commands.h"
#include "engine/local/job_remains.h"
#include "net/address.h"
#include "rendezvous/bootstrap/bootstrap_files.h"

namespace shoal::cli {
namespace {

constexpr const char* kOwnHost = "own";

struct CoordinatorArguments {
  rendezvous::CoordinatorOptions options;
  std::string seed;
  std::string listen;
  int controller_loss = 0;  // seconds; 0: the default
  int life = -1;            // number of earlier coordinators; -1: unknown
};

// Runs a coordinator until it exits. Without a shared filesystem its directory is made of bootstrap
// files first.
Status Coordinate(CoordinatorArguments arguments) {
  rendezvous::CoordinatorOptions& options = arguments.options;
  if (!arguments.listen.empty()) {
    TRY_ASSIGN(const net::HostPort at, net::ParseHostPort(arguments.listen));
    options.host = at.host;
    options.port = at.port;
  }
  if (options.host == kOwnHost) {
    // Determines the source address for packets to other hosts without sending one (RFC 5737's
    // network).
    TRY_ASSIGN(options.host, net::AdvertisedHost("192.0.2.1"));
  }
  if (arguments.controller_loss > 0) {
    options.limits.controller_loss = std::chrono::seconds(arguments.controller_loss);
    options.limits.controller_start =
        std::max(options.limits.controller_start, options.limits.controller_loss);
  }
  options.no_shared_filesystem = !arguments.seed.empty();
  options.first_incarnation = arguments.life == 0;
  if (options.no_shared_filesystem)
    TRY(rendezvous::InstallBootstrapFiles(arguments.seed, options.job_dir));
  if (!options.no_shared_filesystem)
    options.controller_lives = [dir = options.job_dir] { return engine::HasLiveEngine(dir); };
  return rendezvous::RunCoordinator(options);
}

}  // namespace

void AddCoordinator(CLI::App& app, Run* chosen) {
  CLI::App* const sub = app.add_subcommand("coordinator", "Coordinate the tasks of one job");
  const auto arguments = std::make_shared<CoordinatorArguments>();
  rendezvous::CoordinatorOptions* const options = &arguments->options;
  sub->add_option("--job-dir", options->job_dir, "The job's directory")->required();
  sub->add_option("--host", options->host,
                  "IP address to listen on; own: this host's primary address")
      ->envname("SHOAL_COORDINATOR_HOST");
  sub->add_flag("--batch", options->batch, "The job runs under a batch system")
      ->envname("SHOAL_BATCH");
  sub->add_option("--port", options->port, "Port to listen on; 0: any free port")
      ->envname("SHOAL_COORDINATOR_PORT");
  sub->add_option("--controller-loss", arguments->controller_loss,
                  "Seconds without a controller after which the job stops, if its job file says so")
      ->envname("SHOAL_CONTROLLER_LOSS")
      ->check(CLI::Range(1, 86400));
  sub->add_option("--life", arguments->life, "Number of earlier coordinators of this job")
      ->envname("SHOAL_COORDINATOR_LIFE");
  sub->add_option("--listen", arguments->listen, "HOST:PORT, in place of --host and --port");
  sub->add_option("--seed", arguments->seed,
                  "Make the job's directory of this one; the controller does not see it");
  sub->callback([chosen, arguments] {
    *chosen = [arguments](const Context& context) {
      std::error_code ignored;
      rendezvous::CoordinatorOptions& own = arguments->options;
      own.job_dir = std::filesystem::absolute(own.job_dir, ignored).string();
      own.program = context.program;
      const Status status = Coordinate(*arguments);
      if (!status.ok()) LogError("the coordinator cannot go on: {}", status.message());
      return ExitCodeOf(status.code());
    };
  });
}

}  // namespace shoal::cli
