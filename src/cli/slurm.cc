// `shoal slurm …`: what runs inside an allocation of Slurm (engine/slurm/inside.h). Started by
// batch scripts and sruns, not by people, hence hidden.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/report.h"
#include "engine/slurm/inside.h"

namespace shoal::cli {

void AddSlurm(CLI::App& app, Run* chosen) {
  CLI::App* const sub = app.add_subcommand("slurm", "Serve a job's allocation of Slurm");
  sub->callback([chosen] {
    *chosen = [](const Context& context) {
      const Result<int> code = engine::slurm::RunHelper(context.rest);
      return code.ok() ? *code : Complain(code.status());
    };
  });
}

}  // namespace shoal::cli
