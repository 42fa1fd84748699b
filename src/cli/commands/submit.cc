// `shoal submit FILE`: hands a job to a server and returns at once.

#include <CLI/CLI.hpp>
#include <memory>

#include "api/client/login_file.h"
#include "api/client/remote_jobs.h"
#include "cli/commands/commands.h"
#include "cli/jobs/load_job.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

struct SubmitArguments {
  std::string file;
  std::vector<std::string> set;
  std::string name;
  std::string engine;
  std::string team;
  std::string directory;
  std::string document;
};

Result<std::string> SubmitFile(const Context& context, const SubmitArguments& arguments) {
  TRY_ASSIGN(const std::optional<api::Login> login, api::ChooseServer(context.server));
  if (!login)
    return InvalidArgument(
        "`shoal submit` needs a server, which runs the job after this command has ended; name one "
        "with --server or `shoal login`, or use `shoal run " +
        arguments.file + "`, which waits for the job");
  std::vector<std::string> overrides = arguments.set;
  if (!arguments.name.empty()) overrides.push_back("name=" + arguments.name);
  TRY_ASSIGN(LoadedJob loaded,
             LoadJob(arguments.file, overrides, arguments.directory, arguments.document));
  // The server checks the rest: it knows the engine, and where the data is.
  TRY(CheckJob(loaded.job(), learn::DataLocation::kRemote, loaded.imported.places));
  api::RemoteJobsOptions options;
  options.team = arguments.team;
  options.on_note = [](const std::string& sentence) { PrintNote(sentence); };
  TRY_ASSIGN(const auto jobs, api::MakeRemoteJobs(*login, std::move(options)));
  controller::NewRun run;
  run.job = loaded.job();
  run.engine = arguments.engine;
  run.work_dir = loaded.folder;
  run.locations = loaded.imported.places;
  TRY_ASSIGN(std::string id, jobs->Submit(run));
  if (!context.json && context.stderr_is_terminal)
    PrintNote("submitted to " + login->url + "; `shoal logs -f " + id + "` follows it");
  return context.json ? ToText(json::object{{"id", id}, {"server", login->url}}) : id;
}

int Submit(const Context& context, const SubmitArguments& arguments) {
  const Result<std::string> done = SubmitFile(context, arguments);
  return done.ok() ? PrintConfirmation(*done + "\n") : PrintError(done.status());
}

constexpr const char* kSubmitFooter = R"help(Examples:
  shoal submit job.yaml
  shoal submit job.yaml --server https://ml.example:7117 --team research
  shoal submit job.yaml --set roles.worker.replicas=8 --engine kubernetes
  shoal logs -f $(shoal submit job.yaml)

Prints the job's ID. `files:` are uploaded first, only what the server does not have yet; an upload
that broke off goes on. Paths of data and outputs are those of the server's machine or cluster.)help";

}  // namespace

void AddSubmit(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<SubmitArguments>();
  CLI::App* sub = app.add_subcommand("submit", "Hand a job to a server and return at once");
  sub->add_option("FILE", arguments->file,
                  "Job file (YAML; docs/job-file.md), or a job description of another system; -: "
                  "standard input")
      ->required();
  sub->add_option("--set", arguments->set, "Override a field of the file: PATH=VALUE (repeatable)")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
  sub->add_option("--name", arguments->name, "Name of the job")->type_name("NAME");
  sub->add_option("--team", arguments->team, "Team that owns the job [your only team]")
      ->type_name("TEAM");
  sub->add_option("--engine", arguments->engine, "Engine of the server [its default]")
      ->type_name("NAME");
  AddDirectoryOption(sub, &arguments->directory);
  AddDocumentOption(sub, &arguments->document);
  sub->footer(kSubmitFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Submit(context, *arguments); };
  });
}

}  // namespace shoal::cli
