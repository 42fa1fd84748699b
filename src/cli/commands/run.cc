// `shoal run FILE`: the job that a file describes, in the foreground.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/engines.h"
#include "cli/jobs/job_runner.h"
#include "cli/jobs/load_job.h"
#include "cli/terminal/report.h"
#include "import/import.h"
#include "job/file/parse.h"

namespace shoal::cli {
namespace {

struct Arguments {
  std::string file;
  std::vector<std::string> set;
  std::string name;
  bool quiet = false;
  std::string engine;
  std::string directory;
  std::string document;
};

Result<LoadedJob> LoadOne(const Arguments& arguments, const std::string& document) {
  std::vector<std::string> overrides = arguments.set;
  if (!arguments.name.empty()) overrides.push_back("name=" + arguments.name);
  return LoadJob(arguments.file, overrides, arguments.directory, document);
}

int RunOne(const Context& context, const Arguments& arguments, const std::string& document) {
  Result<LoadedJob> loaded = LoadOne(arguments, document);
  if (!loaded.ok()) return PrintError(loaded.status());
  // Before anything is told of it; the controller asks again.
  const Status valid = CheckJob(loaded->job(), arguments.engine, loaded->imported.places);
  if (!valid.ok()) return PrintError(valid);
  if (!arguments.quiet) PrintUnusedFields(*loaded, arguments.engine);
  if (!arguments.quiet && !context.json && !loaded->job().schedule.cron.empty())
    PrintNote(arguments.file + " has a schedule, and is run once, now; `shoal schedule " +
              arguments.file + "` has it run at its times");
  return RunJob(context, std::move(loaded->job()),
                {.quiet = arguments.quiet,
                 .engine = arguments.engine,
                 .places = loaded->imported.places,
                 .folder = loaded->folder});
}

// The jobs of a foreign file, if it can be read twice: what comes by a pipe cannot.
std::vector<importer::JobInFile> JobsOf(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  const auto text = job::ReadJobFile(file);
  return text.ok() ? importer::ListJobs(*text) : std::vector<importer::JobInFile>();
}

// One after another, as long as they succeed; none if one of them is wrong.
int RunAll(const Context& context, const Arguments& arguments,
           const std::vector<importer::JobInFile>& jobs) {
  if (!arguments.name.empty()) {
    return PrintError(InvalidArgument("got --name for the " + std::to_string(jobs.size()) +
                                      " jobs of " + arguments.file +
                                      ", expected --document with it to choose one"));
  }
  for (const importer::JobInFile& one : jobs) {
    const auto loaded = LoadOne(arguments, std::to_string(one.document));
    if (!loaded.ok()) return PrintError(loaded.status());
    const Status valid = CheckJob(loaded->job(), arguments.engine, loaded->imported.places);
    if (!valid.ok()) return PrintError(valid);
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string place = "job " + std::to_string(i + 1) + " of " +
                              std::to_string(jobs.size()) + " in " + arguments.file + ", " +
                              jobs[i].name;
    if (!arguments.quiet) PrintNote(place);
    const int code = RunOne(context, arguments, std::to_string(jobs[i].document));
    if (code == 0) continue;
    if (i + 1 < jobs.size())
      PrintNote(place + ", ended with exit code " + std::to_string(code) +
                "; those behind it are not run");
    return code;
  }
  return 0;
}

int RunFile(const Context& context, const Arguments& arguments) {
  if (arguments.document.empty()) {
    const std::vector<importer::JobInFile> jobs = JobsOf(arguments.file);
    if (jobs.size() > 1) return RunAll(context, arguments, jobs);
  }
  return RunOne(context, arguments, arguments.document);
}

constexpr const char* kFooter = R"help(Examples:
  shoal run job.yaml
  shoal run job.yaml --set roles.worker.replicas=8 --set learn.dim=200
  shoal run job.yaml --json | jq .
  shoal run tfjob.yaml                     a job of Kubeflow, Volcano or Marathon, see shoal import
  shoal run jobs.yaml --document train     of several jobs in such a file; without it all, one after another

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
  AddDocumentOption(sub, &arguments->document);
  AddEngineOption(sub, &arguments->engine);
  sub->add_flag("-q,--quiet", arguments->quiet, "Print nothing but errors");
  sub->footer(kFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return RunFile(context, *arguments); };
  });
}

}  // namespace shoal::cli
