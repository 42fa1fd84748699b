// `shoal version`.

#include "cli/version.h"

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/terminal/report.h"

#ifndef SHOAL_VERSION
#define SHOAL_VERSION "unknown"
#endif

namespace shoal::cli {

std::string Version() { return SHOAL_VERSION; }
std::string VersionLine() { return "shoal " + Version(); }

void AddVersion(CLI::App& app, Run* chosen) {
  CLI::App* sub = app.add_subcommand("version", "Print the version");
  sub->callback([chosen] {
    *chosen = [](const Context& context) {
      const std::string line =
          context.json ? ToText(json::object{{"version", Version()}}) : VersionLine();
      return PrintResult(line + "\n");
    };
  });
}

}  // namespace shoal::cli
