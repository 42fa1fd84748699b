// `shoal slurm …` and `shoal marathon …`: helpers that run inside a Slurm allocation or a Mesos
// task. Started by batch scripts, by srun and by Marathon; hidden from --help.

#include <CLI/CLI.hpp>

#include "cli/internal/internal_commands.h"
#include "cli/terminal/report.h"
#include "engine/marathon/marathon_helper.h"
#include "engine/slurm/slurm_helper.h"

namespace shoal::cli {
namespace {

using RunHelper = Result<int> (*)(const std::vector<std::string>& words);

void Add(CLI::App& app, Run* chosen, const char* name, const char* does, RunHelper run) {
  app.add_subcommand(name, does)->callback([chosen, run] {
    *chosen = [run](const Context& context) {
      const Result<int> code = run(context.passthrough_args);
      return code.ok() ? *code : PrintError(code.status());
    };
  });
}

}  // namespace

void AddSlurm(CLI::App& app, Run* chosen) {
  Add(app, chosen, "slurm", "Serve a job's allocation of Slurm", engine::slurm::RunHelper);
}

void AddMarathon(CLI::App& app, Run* chosen) {
  Add(app, chosen, "marathon", "Hold a place of a job's role", engine::marathon::RunHelper);
}

}  // namespace shoal::cli
