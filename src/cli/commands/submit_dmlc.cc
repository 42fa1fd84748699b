// `shoal submit-dmlc …`: accepts dmlc-submit's command line, and that of MXNet's tools/launch.py.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/engines.h"
#include "cli/jobs/job_runner.h"
#include "cli/jobs/load_job.h"
#include "cli/terminal/report.h"
#include "import/dmlc_submit.h"

namespace shoal::cli {
namespace {

struct SubmitDmlcArguments {
  std::map<std::string, std::vector<std::string>> flags;
  bool print = false;
  std::string engine;
};

int Submit(const Context& context, const SubmitDmlcArguments& arguments) {
  std::map<std::string, std::vector<std::string>> given;
  for (const auto& [name, values] : arguments.flags) {
    if (!values.empty()) given[name] = values;
  }
  std::vector<std::string> command = context.passthrough_args;
  if (!command.empty() && command[0] == "--") command.erase(command.begin());
  Result<importer::ImportedJob> imported = importer::ImportDmlcSubmit(given, command);
  if (imported.ok()) imported = importer::FinishImport(std::move(*imported), {});
  if (!imported.ok()) return PrintError(imported.status());
  if (arguments.print) return PrintResult(importer::WriteImported(*imported));
  PrintUnusedFields({*imported, ""}, arguments.engine);
  return RunJob(context, std::move(imported->job), {.engine = arguments.engine});
}

constexpr const char* kSubmitDmlcFooter = R"help(Examples:
  shoal submit-dmlc --cluster local --num-workers 2 --num-servers 1 -- python train.py --kv-store dist_sync
  shoal submit-dmlc --num-workers 4 ./linear.dmlc data.conf      a rabit job
  shoal submit-dmlc --num-workers 2 --num-servers 1 --print-job -- ./test_kv_app > job.yaml
  shoal submit-dmlc -n 2 --launcher local python train.py        a line of MXNet's tools/launch.py

The program after the flags runs as scheduler, server and worker; all arguments after its name are
passed to it. Differences from dmlc-submit on its clusters are printed before the start.)help";

}  // namespace

// Counts flags with their values, up to the first other word or "--".
int CountDmlcOwnArgs(int argc, const char* const* argv) {
  int at = 2;
  while (at < argc) {
    const std::string word = argv[at];
    if (!word.starts_with("-") || word == "--") break;
    const bool short_value = word == "-n" || word == "-s" || word == "-H";
    const bool whole = word.find('=') != std::string::npos ||
                       (!word.starts_with("--") && !short_value) || word == "--print-job" ||
                       word == "--json" || word == "--help";
    at += whole ? 1 : 2;
  }
  return std::min(at, argc);
}

void AddSubmitDmlc(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<SubmitDmlcArguments>();
  CLI::App* sub =
      app.add_subcommand("submit-dmlc", "Run a job described by a dmlc-submit command line");
  for (const importer::DmlcFlag& flag : importer::DmlcFlags()) {
    const std::string name(flag.name);
    sub->add_option((name.size() == 1 ? "-" : "--") + name, arguments->flags[name],
                    std::string(flag.doc))
        ->allow_extra_args(false)
        ->type_name("");
  }
  AddEngineOption(sub, &arguments->engine);
  sub->add_flag("--print-job", arguments->print, "Print the job file instead of running it");

  sub->footer(kSubmitDmlcFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Submit(context, *arguments); };
  });
}

}  // namespace shoal::cli
