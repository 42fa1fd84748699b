// `shoal run FILE`: runs the job of a file in the foreground.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "api/client/login_file.h"
#include "cli/commands/commands.h"
#include "cli/jobs/dry_run.h"
#include "cli/jobs/engines.h"
#include "cli/jobs/job_runner.h"
#include "cli/jobs/load_job.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "import/import.h"
#include "job/file/parse.h"

namespace shoal::cli {
namespace {

struct RunArguments {
  std::string file;
  std::vector<std::string> set;
  std::string name;
  bool quiet = false;
  std::string engine;
  bool engine_given = false;
  std::string directory;
  std::string document;
  bool dry_run = false;
};

Result<LoadedJob> LoadOne(const RunArguments& arguments, const std::string& document) {
  std::vector<std::string> overrides = arguments.set;
  if (!arguments.name.empty()) overrides.push_back("name=" + arguments.name);
  return LoadJob(arguments.file, overrides, arguments.directory, document);
}

// Runs the job on a server, which knows its engines and where their data is.
int RunOnServer(const Context& context, const RunArguments& arguments, LoadedJob loaded) {
  const Status valid = CheckJobForServer(loaded.job(), loaded.imported.places);
  if (!valid.ok()) return PrintError(valid);
  if (arguments.dry_run) {
    const auto jobs = OpenJobs(context);
    if (!jobs.ok()) return PrintError(jobs.status());
    controller::NewRun run;
    run.job = std::move(loaded.job());
    run.engine = arguments.engine_given ? arguments.engine : "";
    run.work_dir = loaded.folder;
    return DryRun(context, jobs->get(), run);
  }
  return RunJob(context, std::move(loaded.job()),
                {.quiet = arguments.quiet,
                 .engine = arguments.engine_given ? arguments.engine : "",
                 .places = loaded.imported.places,
                 .folder = loaded.folder});
}

int RunOne(const Context& context, const RunArguments& arguments, const std::string& document) {
  Result<LoadedJob> loaded = LoadOne(arguments, document);
  if (!loaded.ok()) return PrintError(loaded.status());
  const Result<std::optional<api::Login>> server = api::ChooseServer(context.server);
  if (!server.ok()) return PrintError(server.status());
  if (server->has_value()) return RunOnServer(context, arguments, std::move(*loaded));
  if (arguments.dry_run)
    return PrintError(FailedPrecondition(
        "--dry-run asks the queue of a server; name it with --server, or see the tasks of the job "
        "with `shoal plan`"));
  // Validated before any note is printed; the controller validates again.
  const Status valid = CheckJob(loaded->job(), arguments.engine, loaded->imported.places);
  if (!valid.ok()) return PrintError(valid);
  if (!arguments.quiet) PrintUnusedFields(*loaded, arguments.engine);
  if (!arguments.quiet && !context.json && !loaded->job().schedule.cron.empty())
    PrintNote(arguments.file + " has a schedule, but runs once, now; `shoal schedule " +
              arguments.file + "` registers its schedule");
  return RunJob(context, std::move(loaded->job()),
                {.quiet = arguments.quiet,
                 .engine = arguments.engine,
                 .places = loaded->imported.places,
                 .folder = loaded->folder});
}

// The jobs in the file, if it can be read twice, which a pipe cannot.
std::vector<importer::JobInFile> JobsOf(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  const auto text = job::ReadJobFile(file);
  return text.ok() ? importer::ListJobs(*text) : std::vector<importer::JobInFile>();
}

// Runs the jobs in sequence as long as they succeed; none if one of them is invalid.
int RunAll(const Context& context, const RunArguments& arguments,
           const std::vector<importer::JobInFile>& jobs) {
  if (!arguments.name.empty()) {
    return PrintError(InvalidArgument("got --name for the " + std::to_string(jobs.size()) +
                                      " jobs of " + arguments.file +
                                      ", expected --document with it to choose one"));
  }
  const Result<std::optional<api::Login>> server = api::ChooseServer(context.server);
  if (!server.ok()) return PrintError(server.status());
  for (const importer::JobInFile& one : jobs) {
    const auto loaded = LoadOne(arguments, std::to_string(one.document));
    if (!loaded.ok()) return PrintError(loaded.status());
    const Status valid = *server
                             ? CheckJobForServer(loaded->job(), loaded->imported.places)
                             : CheckJob(loaded->job(), arguments.engine, loaded->imported.places);
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
                "; the remaining jobs are not run");
    return code;
  }
  return 0;
}

int RunFile(const Context& context, const RunArguments& arguments) {
  if (arguments.document.empty()) {
    const std::vector<importer::JobInFile> jobs = JobsOf(arguments.file);
    if (jobs.size() > 1) return RunAll(context, arguments, jobs);
  }
  return RunOne(context, arguments, arguments.document);
}

constexpr const char* kRunFooter = R"help(Examples:
  shoal run job.yaml
  shoal run job.yaml --set roles.worker.replicas=8 --set learn.dim=200
  shoal run job.yaml --json | jq .
  shoal run tfjob.yaml                     a Kubeflow, Volcano or Marathon job (see shoal import)
  shoal run jobs.yaml --document train     one of several jobs in a file; default: all, in sequence

Ctrl-C (or SIGTERM, SIGHUP) lets the tasks save and end; a second signal kills them. With nohup the
job survives its terminal. Exit codes: 0 the job succeeded, 1 it failed, 2 the file is invalid, 130
it was cancelled.)help";

}  // namespace

void AddRun(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* sub =
      app.add_subcommand("run", "Run the job described by a file and wait until it ends");
  sub->add_option("FILE", arguments->file,
                  "Job file (YAML; docs/job-file.md), or a job description of another system; -: "
                  "standard input")
      ->required();
  sub->add_option("--set", arguments->set, "Override a field of the file: PATH=VALUE (repeatable)")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
  sub->add_option("--name", arguments->name, "Name of the job")->type_name("NAME");
  sub->add_flag("--dry-run", arguments->dry_run,
                "With a server: only say whether it would start now, else why not and when");
  AddDirectoryOption(sub, &arguments->directory);
  AddDocumentOption(sub, &arguments->document);
  AddEngineOption(sub, &arguments->engine);
  CLI::Option* const engine = sub->get_option("--engine");
  sub->add_flag("-q,--quiet", arguments->quiet, "Print errors only");
  sub->footer(kRunFooter);
  sub->callback([arguments, engine, chosen] {
    arguments->engine_given = engine->count() > 0;
    *chosen = [arguments](const Context& context) { return RunFile(context, *arguments); };
  });
}

}  // namespace shoal::cli
