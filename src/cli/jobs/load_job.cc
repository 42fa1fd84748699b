#include "cli/jobs/load_job.h"

#include <glob.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "cli/commands/import.h"
#include "cli/jobs/engines.h"
#include "cli/terminal/report.h"
#include "controller/run/unused_fields.h"
#include "job/file/fields.h"
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

// Prepends the location to a sentence that begins with a field's path, "outputs.model: missing".
std::string WithPlace(const job::Job& job, const job::FieldLocations& places,
                      const std::string& sentence) {
  const std::string path = sentence.substr(0, sentence.find_first_of(":, "));
  const bool is_field = job::FindField(path.substr(0, path.find('.'))) != nullptr;
  return (is_field ? places.Prefix(job.file, path) : "") + sentence;
}

// The files that match a pattern, sorted by name; the pattern itself if there are none or if it
// names a file.
std::vector<std::string> FilesOf(const std::string& pattern) {
  std::error_code error;
  if (pattern.find_first_of("*?[") == std::string::npos || fs::exists(pattern, error))
    return {pattern};
  glob_t found{};
  std::vector<std::string> files;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (files.empty()) return {pattern};
  std::ranges::sort(files);
  return files;
}

// A role without a command needs an engine that can resolve the image's entry point.
Status RefuseEntryPoint(const job::Job& job, const std::string& engine,
                        const job::FieldLocations& places) {
  for (const job::Role& role : job.roles) {
    if (job.image.empty() || !job.CommandOf(role).empty() || !job.learn.empty()) continue;
    return InvalidArgument(WithPlace(
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

}  // namespace

void ExpandData(job::Job* job) {
  if (job->framework != job::Framework::kShoal) return;
  for (job::DataSource& set : job->data) {
    std::vector<std::string> files;
    for (const std::string& source : set.sources)
      std::ranges::move(FilesOf(source), std::back_inserter(files));
    set.sources = std::move(files);
  }
}

Result<LoadedJob> LoadJob(const std::string& file, const std::vector<std::string>& overrides,
                          const std::string& directory, const std::string& document) {
  LoadedJob loaded;
  TRY_ASSIGN(loaded.imported, importer::LoadJobFile(file, overrides, document));
  std::error_code error;
  loaded.folder = directory.empty() ? FolderOf(file) : fs::absolute(directory, error).string();
  if (!fs::is_directory(loaded.folder, error))
    return InvalidArgument("--directory: there is no directory " + loaded.folder);
  job::ResolvePaths(loaded.imported.places, loaded.folder, WorkingDirectory(),
                    &loaded.imported.job);
  ExpandData(&loaded.imported.job);
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

Status CheckJob(const job::Job& job, learn::DataLocation data, const job::FieldLocations& places) {
  Status valid = controller::RefuseUnusedFields(job, places);
  if (valid.ok()) valid = learn::ValidateLearn(job, data);
  std::error_code error;
  if (valid.ok() && !job.files.empty() && !fs::is_directory(job.files, error))
    valid = InvalidArgument("files: got " + job.files + ", expected a directory that exists");
  // Errors in parameters and data are wrong usage at this point, before a job exists.
  return valid.ok() ? valid : InvalidArgument(WithPlace(job, places, valid.message()));
}

Status CheckJob(const job::Job& job, const std::string& engine, const job::FieldLocations& places) {
  if (engine != "docker") TRY(RefuseEntryPoint(job, engine, places));
  return CheckJob(job, WhereDataIs(engine, job), places);
}

void PrintUnusedFields(const LoadedJob& loaded, const std::string& engine) {
  for (const controller::UnusedField& unused : controller::UnusedFields(loaded.job(), engine))
    PrintNote("note: " + WithPlace(loaded.job(), loaded.imported.places, unused.sentence));
  PrintImportLosses(loaded.imported, engine);
}

}  // namespace shoal::cli
