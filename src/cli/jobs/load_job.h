// Loads a job file for a command: read, completed, with absolute paths and validated. `shoal run`,
// `plan` and `schedule` share it, so all accept and report the same.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "controller/run/validate_job.h"
#include "import/import.h"
#include "learn/algorithm.h"

namespace CLI {
class App;
}

namespace shoal::cli {

struct LoadedJob {
  importer::ImportedJob imported;
  // Directory where its programs start and which its relative paths refer to: the file's directory;
  // the working directory for a job from standard input or a pipe.
  std::string folder;

  job::Job& job() { return imported.job; }
  const job::Job& job() const { return imported.job; }
};

// Relative paths in the file refer to its directory, those of --set to the working directory
// (docs/adr/0187). `directory` replaces the file's directory unless empty. `document` selects one
// of several jobs in the file.
Result<LoadedJob> LoadJob(const std::string& file, const std::vector<std::string>& overrides,
                          const std::string& directory = "", const std::string& document = "");
// The directory that the relative paths of a file refer to: `directory`, else the file's.
// InvalidArgument if there is none.
Result<std::string> FolderOfFile(const std::string& file, const std::string& directory);
// Adds --directory.
void AddDirectoryOption(CLI::App* sub, std::string* directory);
// Adds --document.
void AddDocumentOption(CLI::App* sub, std::string* document);

// The controller's validation of a job, with the trainers' rules.
controller::JobValidation ValidationOf(learn::DataLocation data,
                                       const job::FieldLocations& locations);
// Rejects what a run on the engine would reject: the algorithm's parameters, roles, outputs, and
// unreadable data if the tasks read this machine's files. InvalidArgument.
Status CheckJob(const job::Job& job, const std::string& engine, const job::FieldLocations& places);
// The same for a job that is only scheduled: its data may be absent.
Status CheckJob(const job::Job& job, learn::DataLocation data, const job::FieldLocations& places);
// The same for a job that is handed to a server, which checks the rest: it knows its engines, its
// catalogue, and where the data is.
Status CheckJobForServer(const job::Job& job, const job::FieldLocations& places);

// Prints to standard error the fields that the engine ignores and the settings that the import
// dropped.
void PrintUnusedFields(const LoadedJob& loaded, const std::string& engine);

}  // namespace shoal::cli
