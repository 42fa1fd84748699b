// `shoal task --job-dir DIR --role R --index N --incarnation K [--seed DIR --coordinator HOST:PORT
// --host ADDRESS]`: the launcher of one task. Started by engines, not by people, hence hidden.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/log.h"
#include "base/open_file_limit.h"
#include "cli/internal/internal_commands.h"
#include "rendezvous/bootstrap/bootstrap_files.h"
#include "rendezvous/launcher/launcher.h"

namespace shoal::cli {
namespace {

struct TaskArguments {
  rendezvous::LauncherOptions options;
  std::string seed;
  std::string coordinator;
};

Status MakeDirectory(const TaskArguments& arguments) {
  const std::string& dir = arguments.options.job_dir;
  if (!arguments.seed.empty()) TRY(rendezvous::InstallBootstrapFiles(arguments.seed, dir));
  if (arguments.coordinator.empty()) return Status::Ok();
  return rendezvous::InstallCoordinatorAddress(arguments.coordinator, dir);
}

}  // namespace

void AddTask(CLI::App& app, Run* chosen) {
  CLI::App* const sub = app.add_subcommand("task", "Launch one task of a job");
  const auto arguments = std::make_shared<TaskArguments>();
  rendezvous::LauncherOptions* const options = &arguments->options;
  sub->add_option("--job-dir", options->job_dir, "The job's directory")->required();
  sub->add_option("--role", options->role, "The task's role")->required();
  sub->add_option("--index", options->index, "Index of the task; -1: any free one");
  sub->add_option("--incarnation", options->incarnation,
                  "Number of earlier launchers of this task");
  sub->add_option("--host", options->host, "IP address at which other tasks reach this one");
  sub->add_option("--seed", arguments->seed, "Make the job's directory of this one");
  sub->add_option("--coordinator", arguments->coordinator,
                  "HOST:PORT of the coordinator, for a task without a shared job directory");
  sub->callback([chosen, arguments] {
    *chosen = [arguments](const Context& /*context*/) {
      RestoreOpenFiles();  // the program gets the user's limit, not that of this process
      std::error_code ignored;
      rendezvous::LauncherOptions& own = arguments->options;
      own.job_dir = std::filesystem::absolute(own.job_dir, ignored).string();
      own.no_shared_filesystem = !arguments->coordinator.empty();
      if (const Status made = MakeDirectory(*arguments); !made.ok()) {
        LogError("the task's directory cannot be made: {}", made.message());
        return ExitCodeOf(made.code());
      }
      return rendezvous::RunLauncher(own);
    };
  });
}

}  // namespace shoal::cli
