// `shoal import FILE`: converts a job description of another system to a job file, with a comment
// on each dropped setting.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/load_job.h"
#include "cli/terminal/report.h"
#include "job/execution/plan.h"
#include "job/spec/json.h"

namespace shoal::cli {
namespace {

struct ImportArguments {
  std::string file;
  std::vector<std::string> set;
  std::string document;
};

json::object ToJson(const importer::ImportedJob& imported) {
  json::array losses;
  for (const importer::ImportLoss& loss : imported.losses) {
    losses.push_back(json::object{{"line", loss.place.line},
                                  {"column", loss.place.column},
                                  {"field", loss.field},
                                  {"sentence", loss.sentence},
                                  {"at", loss.at},
                                  {"kept_for", loss.engine},
                                  {"minor", loss.minor}});
  }
  return {{"dialect", imported.format},
          {"file", imported.file},
          {"job", job::ToJson(imported.job)},
          {"losses", std::move(losses)}};
}

int ImportFile(const Context& context, const ImportArguments& arguments) {
  Result<importer::ImportedJob> imported =
      importer::LoadJobFile(arguments.file, arguments.set, arguments.document);
  if (!imported.ok()) return PrintError(imported.status());
  if (imported->format.empty()) PrintNote(imported->file + " is a job file already");
  return PrintResult(context.json ? JsonLine(ToJson(*imported))
                                  : importer::WriteImported(*imported));
}

constexpr const char* kImportFooter = R"help(Examples:
  shoal import tfjob.yaml > job.yaml       write the job file, to edit and run it
  shoal import word2vec.json --set roles.worker.replicas=8
  shoal import pytorchjob.yaml --json | jq '.losses[] | select(.minor | not)'
  shoal import train.sbatch                a Slurm batch script
  shoal run tfjob.yaml                     run without writing a job file

Reads Kubeflow's TFJob, PyTorchJob, MPIJob, XGBoostJob, JAXJob, PaddleJob, MXJob and TrainJob,
JobSet, RayJob, SparkApplication, Job and CronJob of Kubernetes and Volcano, Marathon apps and
groups, Metronome jobs and Slurm batch scripts; the format is detected from the content. Each
setting that is dropped gets a comment in the job file with its field, line, meaning and replacement
(docs/import.md, docs/import-slurm.md).)help";

}  // namespace

void AddImport(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* sub = app.add_subcommand(
      "import", "Convert a job description of another system to a job file of Shoal");
  sub->add_option("FILE", arguments->file, "TFJob, Volcano job, Marathon app, sbatch script …")
      ->required();
  sub->add_option("--set", arguments->set,
                  "Override a field of the job file: PATH=VALUE (repeatable)")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
  AddDocumentOption(sub, &arguments->document);
  sub->footer(kImportFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return ImportFile(context, *arguments); };
  });
}

}  // namespace shoal::cli
