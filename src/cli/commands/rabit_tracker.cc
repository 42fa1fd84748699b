// `shoal rabit-tracker`: the program of role `tracker` in a job of framework rabit. Started by
// hand, it serves programs started by hand.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/log.h"
#include "cli/commands/commands.h"
#include "rendezvous/framework_services/rabit_tracker_server.h"

namespace shoal::cli {
namespace {

constexpr const char* kRabitTrackerFooter = R"help(Examples:
  shoal rabit-tracker --workers 2 --host 127.0.0.1 --port 9091

A job of framework rabit runs it as its role tracker (docs/frameworks.md). Started by hand, it ends
when all workers have ended.)help";

}  // namespace

void AddRabitTracker(CLI::App& app, Run* chosen) {
  CLI::App* const sub =
      app.add_subcommand("rabit-tracker", "Run a tracker for rabit and XGBoost workers");
  const auto options = std::make_shared<rendezvous::RabitTrackerOptions>();
  sub->add_option("--workers", options->workers, "Number of workers")
      ->envname("DMLC_NUM_WORKER")
      ->required();
  sub->add_option("--host", options->host, "IP address to listen on")->envname("DMLC_TRACKER_URI");
  sub->add_option("--port", options->port, "Port to listen on; 0: any free port")
      ->envname("DMLC_TRACKER_PORT");
  sub->footer(kRabitTrackerFooter);
  sub->callback([chosen, options] {
    *chosen = [options](const Context& /*context*/) {
      const Status status = rendezvous::RunRabitTracker(*options);
      if (!status.ok()) LogError("the tracker cannot go on: {}", status.message());
      return ExitCodeOf(status.code());
    };
  });
}

}  // namespace shoal::cli
