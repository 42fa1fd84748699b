#include "cli/jobs/load_job.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "cli/jobs/engines.h"
#include "cli/terminal/report.h"
#include "controller/files/expand_data.h"
#include "controller/run/unused_fields.h"
#include "job/file/parse.h"

namespace shoal::cli {
namespace {

namespace fs = std::filesystem;

std::string WorkingDirectory() {
  std::error_code error;
  return fs::current_path(error).string();
}

std::string FolderOf(const std::string& file) {
  std::error_code error;
  const fs::path path = fs::absolute(file, error).lexically_normal();
  struct stat info {};
  const bool is_file = !error && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  // /dev/stdin and /proc/self/fd/0 may resolve to a file, but name the standard input.
  const std::string top = path.has_relative_path() ? path.relative_path().begin()->string() : "";
  if (!is_file || top == "dev" || top == "proc") return WorkingDirectory();
  return path.parent_path().string();
}

// A role without a command needs an engine that can resolve the image's entry point.
Status RefuseEntryPoint(const job::Job& job, const std::string& engine,
                        const job::FieldLocations& places) {
  for (const job::Role& role : job.roles) {
    if (job.image.empty() || !job.CommandOf(role).empty() || !job.learn.empty()) continue;
    return InvalidArgument(controller::WithLocation(
        job, places,
        "roles." + role.name + ": got an image without a command, expected one with the engine " +
            engine + ": the entry point of " + job.image +
            " is not known here, only --engine docker resolves it; set the command with --set "
            "'roles." +
            role.name +
            ".command=[python, train.py]'; to see the image's entry point: docker "
            "image inspect --format '{{json .Config.Entrypoint}} {{json .Config.Cmd}}' " +
            job.image));
  }
  return Status::Ok();
}

// Prints to standard error a sentence for each dropped setting that may affect programs on this
// engine; nothing for a native job file.
void PrintImportLosses(const importer::ImportedJob& imported, const std::string& engine) {
  if (imported.format.empty()) return;
  size_t minor = 0;
  for (const importer::ImportLoss& loss : imported.losses) {
    if (loss.engine == engine) continue;
    if (loss.at == "image")
      continue;  // for the local engine, reported by UnusedFields where it applies
    minor += loss.minor ? 1 : 0;
    if (!loss.minor) PrintNote("note: " + FormatLoss(imported, loss));
  }
  if (minor > 0) {
    PrintNote("note: " + std::to_string(minor) + " more " + (minor == 1 ? "thing" : "things") +
              " in " + imported.file + " that programs do not notice " +
              (minor == 1 ? "is" : "are") + " not kept either; `shoal import` names " +
              (minor == 1 ? "it" : "them"));
  }
}

}  // namespace

Result<std::string> FolderOfFile(const std::string& file, const std::string& directory) {
  std::error_code error;
  std::string folder = directory.empty() ? FolderOf(file) : fs::absolute(directory, error).string();
  if (folder.empty()) {
    return InvalidArgument(
        "the working directory has been removed, so there is no directory for the job's relative "
        "paths; change to one that exists, or name one with --directory");
  }
  if (!fs::is_directory(folder, error))
    return InvalidArgument("--directory: there is no directory " + folder);
  return folder;
}

Result<LoadedJob> LoadJob(const std::string& file, const std::vector<std::string>& overrides,
                          const std::string& directory, const std::string& document) {
  LoadedJob loaded;
  TRY_ASSIGN(loaded.imported, importer::LoadJobFile(file, overrides, document));
  TRY_ASSIGN(loaded.folder, FolderOfFile(file, directory));
  job::ResolvePaths(loaded.imported.places, loaded.folder, WorkingDirectory(),
                    &loaded.imported.job);
  controller::ExpandData(&loaded.imported.job);
  return loaded;
}

void AddDirectoryOption(CLI::App* sub, std::string* directory) {
  sub->add_option("--directory", *directory,
                  "Working directory of the programs and base of the file's relative paths [the "
                  "file's directory]")
      ->type_name("DIR");
}

void AddDocumentOption(CLI::App* sub, std::string* document) {
  sub->add_option("--document", *document,
                  "Select one of several jobs in the file, by name or by document number")
      ->type_name("N|NAME");
}

controller::JobValidation ValidationOf(learn::DataLocation data,
                                       const job::FieldLocations& locations) {
  return {.locations = locations,
          .learn = [data](const job::Job& job) { return learn::ValidateLearn(job, data); }};
}

Status CheckJob(const job::Job& job, learn::DataLocation data, const job::FieldLocations& places) {
  return controller::ValidateJob(job, ValidationOf(data, places));
}

Status CheckJob(const job::Job& job, const std::string& engine, const job::FieldLocations& places) {
  if (engine != "docker") TRY(RefuseEntryPoint(job, engine, places));
  return CheckJob(job, WhereDataIs(engine, job), places);
}

Status CheckJobForServer(const job::Job& job, const job::FieldLocations& places) {
  controller::JobValidation validation = ValidationOf(learn::DataLocation::kRemote, places);
  validation.to_server = true;
  // What a table holds, and in which format, is the catalogue's.
  const bool tables = std::any_of(
      job.data.begin(), job.data.end(),
      [](const job::DataSource& data) { return !data.table.empty() && data.sources.empty(); });
  if (tables) validation.learn = [](const job::Job&) { return Status::Ok(); };
  return controller::ValidateJob(job, validation);
}

void PrintUnusedFields(const LoadedJob& loaded, const std::string& engine) {
  for (const controller::UnusedField& unused : controller::UnusedFields(loaded.job(), engine))
    PrintNote("note: " +
              controller::WithLocation(loaded.job(), loaded.imported.places, unused.sentence));
  PrintImportLosses(loaded.imported, engine);
}

}  // namespace shoal::cli
