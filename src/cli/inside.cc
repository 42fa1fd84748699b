// `shoal slurm …` and `shoal marathon …`: what runs inside an allocation of Slurm
// (engine/slurm/inside.h) or a Mesos task (engine/marathon/inside.h). Started by batch scripts, by
// sruns and by Marathon, not by people, hence hidden.

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/report.h"
#include "engine/marathon/inside.h"
#include "engine/slurm/inside.h"

namespace shoal::cli {
namespace {

using RunHelper = Result<int> (*)(const std::vector<std::string>& words);

void Add(CLI::App& app, Run* chosen, const char* name, const char* does, RunHelper run) {
  app.add_subcommand(name, does)->callback([chosen, run] {
    *chosen = [run](const Context& context) {
      const Result<int> code = run(context.rest);
      return code.ok() ? *code : Complain(code.status());
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
