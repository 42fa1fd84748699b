// `shoal task --job-dir DIR --role R --index N --incarnation K`: the launcher of one task. Started
// by engines, not by people, hence hidden.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "rendezvous/launcher.h"

namespace shoal::cli {

void AddTask(CLI::App& app, Run* chosen) {
  CLI::App* const sub = app.add_subcommand("task", "Launch one task of a job");
  const auto options = std::make_shared<rendezvous::LauncherOptions>();
  sub->add_option("--job-dir", options->job_dir, "The job's directory")->required();
  sub->add_option("--role", options->role, "The task's role")->required();
  sub->add_option("--index", options->index, "The task's index; -1 for any that is free");
  sub->add_option("--incarnation", options->incarnation, "How many launchers came before");
  sub->callback([chosen, options] {
    *chosen = [options](const Context& /*context*/) {
      std::error_code ignored;
      options->job_dir = std::filesystem::absolute(options->job_dir, ignored).string();
      return rendezvous::RunLauncher(*options);
    };
  });
}

}  // namespace shoal::cli
