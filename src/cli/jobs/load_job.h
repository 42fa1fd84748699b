// A job file as the commands take it: read, complete, with absolute paths, checked as a run checks
// it. `shoal run`, `plan` and `schedule` begin here, so that one refuses and tells what the other
// does.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "import/import.h"
#include "learn/algorithm.h"

namespace CLI {
class App;
}

namespace shoal::cli {

struct LoadedJob {
  importer::ImportedJob imported;
  // Where its programs start and its relative paths begin: the file's directory; for a job that
  // does not come from a file (standard input, a pipe) the working directory.
  std::string folder;

  job::Job& job() { return imported.job; }
  const job::Job& job() const { return imported.job; }
};

// Paths that --set gave are seen from the working directory, those of the file from its folder
// (docs/adr/0187). `directory`: instead of that folder; empty: the folder. `document`: which of
// several jobs in the file (importer::ImportText).
Result<LoadedJob> LoadJob(const std::string& file, const std::vector<std::string>& overrides,
                          const std::string& directory = "", const std::string& document = "");
// In a job of framework shoal a pattern among the data, such as news/*.txt, becomes the files that
// match it on this machine, in the order of their names. One that matches none stays as it is.
void ExpandData(job::Job* job);
// Adds --directory.
void AddDirectoryOption(CLI::App* sub, std::string* directory);
// Adds --document.
void AddDocumentOption(CLI::App* sub, std::string* document);

// What a run of the job on the engine of that name refuses: its algorithm's parameters, roles,
// outputs, and the data where this machine has it. InvalidArgument. Also the controller's check of
// what is submitted (ControllerOptions::check).
Status CheckJob(const job::Job& job, const std::string& engine, const job::FieldLocations& places);
// The same of a job that is only being scheduled: its data need not be here yet.
Status CheckJob(const job::Job& job, learn::DataLocation data, const job::FieldLocations& places);

// On standard error: what the engine does nothing with, and what a foreign file loses.
void PrintUnusedFields(const LoadedJob& loaded, const std::string& engine);

}  // namespace shoal::cli
