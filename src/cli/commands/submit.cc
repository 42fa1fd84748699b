// `shoal submit FILE`: hands a job to a server and returns at once.

#include <CLI/CLI.hpp>
#include <memory>

#include "api/client/login_file.h"
#include "api/client/remote_jobs.h"
#include "cli/commands/commands.h"
#include "cli/jobs/dry_run.h"
#include "cli/jobs/load_job.h"
#include "cli/terminal/report.h"
#include "import/import.h"
#include "job/file/parse.h"
#include "job/spec/job_graph.h"

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
  bool dry_run = false;
};

// The text of a file that stands for several jobs: with several documents, a matrix or a sweep;
// nullopt for any other, which is loaded (and refused) as one job.
std::optional<controller::NewFile> ReadSeveral(const SubmitArguments& arguments,
                                               const std::vector<std::string>& overrides) {
  if (arguments.file == "-" || !arguments.document.empty()) return std::nullopt;
  const Result<std::string> text = job::ReadJobFile(arguments.file);
  if (!text.ok() || !importer::ListJobs(*text).empty()) return std::nullopt;
  const auto documents = job::ListDocuments(*text, arguments.file);
  if (!documents.ok() || documents->empty()) return std::nullopt;
  controller::NewFile file;
  file.text = *text;
  file.set = overrides;
  if (documents->size() > 1) return file;
  const auto only = job::ParseJob(*text, arguments.file, overrides);
  if (!only.ok() || !only->triggers.has_members()) return std::nullopt;
  file.set.push_back("name=" + only->name);  // of the file, if the job has none
  return file;
}

// Checks each job here, as far as it can be, and finds the directories to upload.
Status CheckSeveral(const SubmitArguments& arguments, controller::NewFile* file) {
  TRY_ASSIGN(const auto documents, job::ListDocuments(file->text, arguments.file));
  std::vector<job::GraphJob> graph;
  std::vector<job::FieldLocations> locations;
  for (const size_t number : documents) {
    job::DocumentOptions options{file->set, std::nullopt, std::nullopt};
    if (documents.size() > 1) options.document = number;
    job::FieldLocations places;
    TRY_ASSIGN(job::Job job, job::ParseDocument(file->text, arguments.file, options, &places));
    job::ResolvePaths(places, file->work_dir, file->work_dir, &job);
    TRY(CheckJobForServer(job, places));
    file->files.push_back(job.files);
    graph.push_back({job.name, job.triggers.after});
    locations.push_back(std::move(places));
  }
  job::GraphError error;
  if (!job::OrderOf(graph, &error).empty()) return Status::Ok();
  const std::string field = error.of_name ? "name" : "after";
  return InvalidArgument(locations[error.job].Prefix(arguments.file, field) + field + ": " +
                         error.sentence);
}

Result<std::string> SubmitSeveral(const Context& context, const SubmitArguments& arguments,
                                  controller::Jobs* jobs, controller::NewFile file) {
  file.engine = arguments.engine;
  TRY_ASSIGN(file.work_dir, FolderOfFile(arguments.file, arguments.directory));
  TRY(CheckSeveral(arguments, &file));
  TRY_ASSIGN(const auto items, jobs->SubmitFile(file));
  std::string text;
  for (const controller::SubmittedItem& item : items) {
    if (context.json) {
      json::object line{{"id", item.id}, {"kind", item.group ? "group" : "job"}};
      if (item.group) line["members"] = item.members;
      text += ToText(line) + "\n";
    } else {
      text += item.id + "\n";
    }
  }
  if (!context.json && context.stderr_is_terminal && !items.empty())
    PrintNote("submitted; `shoal show " + items.front().id + "` shows what becomes of it");
  if (!text.empty()) text.pop_back();
  return text;
}

// A job of a file for a server, or several.
struct Submission {
  std::string url = {};
  std::unique_ptr<controller::Jobs> jobs = {};
  controller::NewRun run = {};
  std::optional<controller::NewFile> several = {};
};

Result<Submission> Prepare(const Context& context, const SubmitArguments& arguments) {
  TRY_ASSIGN(const std::optional<api::Login> login, api::ChooseServer(context.server));
  if (!login)
    return InvalidArgument(
        "`shoal submit` needs a server, which runs the job after this command has ended; name one "
        "with --server or `shoal login`, or use `shoal run " +
        arguments.file + "`, which waits for the job");
  std::vector<std::string> overrides = arguments.set;
  if (!arguments.name.empty()) overrides.push_back("name=" + arguments.name);
  api::RemoteJobsOptions options;
  options.team = arguments.team;
  options.on_note = [](const std::string& sentence) { PrintNote(sentence); };
  TRY_ASSIGN(auto jobs, api::MakeRemoteJobs(*login, std::move(options)));
  if (auto several = ReadSeveral(arguments, overrides)) {
    Submission submission;
    submission.jobs = std::move(jobs);
    submission.several = std::move(*several);
    return submission;
  }
  TRY_ASSIGN(LoadedJob loaded,
             LoadJob(arguments.file, overrides, arguments.directory, arguments.document));
  TRY(CheckJobForServer(loaded.job(), loaded.imported.places));
  controller::NewRun run;
  run.job = loaded.job();
  run.engine = arguments.engine;
  run.work_dir = loaded.folder;
  run.locations = loaded.imported.places;
  Submission submission;
  submission.url = login->url;
  submission.jobs = std::move(jobs);
  submission.run = std::move(run);
  return submission;
}

Result<std::string> SubmitJob(const Context& context, const Submission& submission) {
  const std::string& url = submission.url;
  TRY_ASSIGN(std::string id, submission.jobs->Submit(submission.run));
  if (!context.json && context.stderr_is_terminal)
    PrintNote("submitted to " + url + "; `shoal logs -f " + id + "` follows it");
  return context.json ? ToText(json::object{{"id", id}, {"server", url}}) : id;
}

int Submit(const Context& context, const SubmitArguments& arguments) {
  const Result<Submission> submission = Prepare(context, arguments);
  if (!submission.ok()) return PrintError(submission.status());
  if (arguments.dry_run && submission->several)
    return PrintError(InvalidArgument(
        "--dry-run tries one job, and " + arguments.file +
        " stands for several; name one with --document, or leave out its matrix or sweep"));
  if (arguments.dry_run) return DryRun(context, submission->jobs.get(), submission->run);
  const Result<std::string> done =
      submission->several
          ? SubmitSeveral(context, arguments, submission->jobs.get(), *submission->several)
          : SubmitJob(context, *submission);
  return done.ok() ? PrintConfirmation(*done + "\n") : PrintError(done.status());
}

constexpr const char* kSubmitFooter = R"help(Examples:
  shoal submit job.yaml
  shoal submit job.yaml --server https://ml.example:7117 --team research
  shoal submit job.yaml --set roles.worker.replicas=8 --engine kubernetes
  shoal submit job.yaml --dry-run
  shoal logs -f $(shoal submit job.yaml)
  shoal submit train.yaml --set 'after=[{job: prepare-7f3a9c, when: succeeded}]'
  shoal submit graph.yaml       several documents, which wait for one another by name
  shoal submit grid.yaml        with `matrix:` or `sweep:`: a group, which `shoal show` and `stop` take

Prints the job's ID, or one line for each job and group (docs/triggers.md). `files:` are uploaded first, only what the server does not have yet; an upload
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
  sub->add_flag("--dry-run", arguments->dry_run,
                "Only say whether it would start now, else why not and when");
  AddDirectoryOption(sub, &arguments->directory);
  AddDocumentOption(sub, &arguments->document);
  sub->footer(kSubmitFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Submit(context, *arguments); };
  });
}

}  // namespace shoal::cli
