// `shoal run FILE`: the job that a file describes, in the foreground.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/engines.h"
#include "cli/job_runner.h"
#include "cli/load_job.h"
#include "cli/report.h"

namespace shoal::cli {
namespace {

struct Arguments {
  std::string file;
  std::vector<std::string> set;
  std::string name;
  bool quiet = false;
  std::string engine;
  std::string directory;
};

int RunFile(const Context& context, const Arguments& arguments) {
  std::vector<std::string> overrides = arguments.set;
  if (!arguments.name.empty()) overrides.push_back("name=" + arguments.name);
  Result<LoadedJob> loaded = LoadJob(arguments.file, overrides, arguments.directory);
  if (!loaded.ok()) return Complain(loaded.status());
  // Before anything is told of it; the controller asks again.
  const Status valid = CheckJob(loaded->job(), arguments.engine, loaded->imported.places);
  if (!valid.ok()) return Complain(valid);
  if (!arguments.quiet) TellUnused(*loaded, arguments.engine);
  if (!arguments.quiet && !context.json && !loaded->job().schedule.cron.empty())
    Tell(arguments.file + " has a schedule, and is run once, now; `shoal schedule " +
         arguments.file + "` has it run at its times");
  return RunJob(context, std::move(loaded->job()),
                {.quiet = arguments.quiet,
                 .engine = arguments.engine,
                 .places = loaded->imported.places,
                 .folder = loaded->folder});
}

constexpr const char* kFooter = R"help(Examples:
  shoal run job.yaml
  shoal run job.yaml --set roles.worker.replicas=8 --set learn.dim=200
  shoal run job.yaml --json | jq .
  shoal run tfjob.yaml                     a job of Kubeflow, Volcano or Marathon, see shoal import

Ctrl-C (or SIGTERM, SIGHUP) lets the tasks save and end; a second one stops them at once. With nohup
the job outlives its terminal. Exit codes: 0 the job succeeded, 1 it failed, 2 the file is wrong, 130
it was cancelled.)help";

}  // namespace

void AddRun(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* sub = app.add_subcommand("run", "Run the job that a file describes, and wait for it");
  sub->add_option("FILE", arguments->file,
                  "Job file (YAML; docs/job-file.md), or a foreign one; -: standard input")
      ->required();
  sub->add_option("--set", arguments->set,
                  "Change a field of the file: PATH=VALUE (may be given often)")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
  sub->add_option("--name", arguments->name, "Name of the job")->type_name("NAME");
  AddDirectoryOption(sub, &arguments->directory);
  AddEngineOption(sub, &arguments->engine);
  sub->add_flag("-q,--quiet", arguments->quiet, "Print nothing but errors");
  sub->footer(kFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return RunFile(context, *arguments); };
  });
}

}  // namespace shoal::cli
