// `shoal marathon …`: what runs inside a Mesos task (engine/marathon/inside.h). Started by
// Marathon, not by people, hence hidden.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/report.h"
#include "engine/marathon/inside.h"

namespace shoal::cli {

void AddMarathon(CLI::App& app, Run* chosen) {
  CLI::App* const sub = app.add_subcommand("marathon", "Hold a place of a job's role");
  sub->callback([chosen] {
    *chosen = [](const Context& context) {
      const Result<int> code = engine::marathon::RunHelper(context.rest);
      return code.ok() ? *code : Complain(code.status());
    };
  });
}

}  // namespace shoal::cli
