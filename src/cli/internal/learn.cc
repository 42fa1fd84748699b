// `shoal learn server|worker`: the program of the tasks of built-in trainers, started by launchers
// and hidden from --help; and `shoal ps-server`, which job files name as a role's command.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/open_file_limit.h"
#include "cli/commands/commands.h"
#include "cli/internal/internal_commands.h"
#include "learn/algorithm.h"

namespace shoal::cli {

void AddLearn(CLI::App& app, Run* chosen) {
  CLI::App* const sub = app.add_subcommand("learn", "Run one task of a built-in trainer");
  const auto role = std::make_shared<std::string>();
  sub->add_option("role", *role, "server or worker")
      ->required()
      ->check(CLI::IsMember({"server", "worker"}));
  sub->callback([chosen, role] {
    *chosen = [role](const Context& /*context*/) {
      RaiseOpenFiles();  // two descriptors for each worker
      return learn::RunTask(*role);
    };
  });
}

namespace {
constexpr const char* kLearnFooter =
    R"help(Examples:
  roles:                             # in a job file whose workers use the server (docs/ps.md)
    server: {replicas: 2, command: ["@shoal", ps-server], ports: [ps], follows: worker}
    worker: {replicas: 4, command: [python3, train.py]}

The role must be named server. With `checkpoint: {every: 60s}` in the job file the servers save
their rows and restore them after a restart.)help";
}  // namespace

void AddPsServer(CLI::App& app, Run* chosen) {
  CLI::App* const sub =
      app.add_subcommand("ps-server", "Run as a parameter server: the command of a job's role");
  sub->footer(kLearnFooter);
  sub->callback([chosen] {
    *chosen = [](const Context& /*context*/) {
      RaiseOpenFiles();
      return learn::RunServerTask();
    };
  });
}

}  // namespace shoal::cli
