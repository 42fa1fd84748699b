// `shoal coordinator --job-dir DIR`: the coordinator of one job. Started by engines, not by people,
// hence hidden.

#include "rendezvous/coordinator.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/log.h"
#include "cli/commands.h"

namespace shoal::cli {

void AddCoordinator(CLI::App& app, Run* chosen) {
  CLI::App* const sub = app.add_subcommand("coordinator", "Coordinate the tasks of one job");
  const auto options = std::make_shared<rendezvous::CoordinatorOptions>();
  sub->add_option("--job-dir", options->job_dir, "The job's directory")->required();
  sub->add_option("--host", options->host, "Numeric address to listen at")
      ->envname("SHOAL_COORDINATOR_HOST");
  sub->add_flag("--batch", options->batch, "Under a batch system")->envname("SHOAL_BATCH");
  sub->add_option("--port", options->port, "Port to listen at; 0 for any");
  sub->callback([chosen, options] {
    *chosen = [options](const Context& context) {
      std::error_code ignored;
      options->job_dir = std::filesystem::absolute(options->job_dir, ignored).string();
      options->program = context.program;
      const Status status = rendezvous::RunCoordinator(*options);
      if (!status.ok()) LogError("the coordinator cannot go on: {}", status.message());
      return ExitCodeOf(status.code());
    };
  });
}

}  // namespace shoal::cli
