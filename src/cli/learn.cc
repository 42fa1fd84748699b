// `shoal learn server|worker`: what the tasks of a built-in trainer run. Started by launchers, not
// by people, hence hidden.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "learn/algorithm.h"

namespace shoal::cli {

void AddLearn(CLI::App& app, Run* chosen) {
  CLI::App* const sub = app.add_subcommand("learn", "Run one task of a built-in trainer");
  const auto role = std::make_shared<std::string>();
  sub->add_option("role", *role, "server or worker")
      ->required()
      ->check(CLI::IsMember({"server", "worker"}));
  sub->callback([chosen, role] {
    *chosen = [role](const Context& /*context*/) { return learn::RunTask(*role); };
  });
}

}  // namespace shoal::cli
