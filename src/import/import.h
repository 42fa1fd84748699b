// Converts job descriptions of other systems to Shoal's Job: TFJob, PyTorchJob, MPIJob, XGBoostJob
// and MXJob, Volcano Job, Marathon apps and groups, Metronome jobs, Slurm batch scripts, and
// dmlc-submit's command line. The format is detected from the text.
//
// `shoal run` and `plan` load every file through LoadJobFile; `shoal import` prints the resulting
// job file. docs/import.md lists for users what happens to each field; docs/adr/0053 gives the
// reasons for the design. All functions are thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "import/conversion/diagnostics.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"

namespace shoal::importer {

// The result of an import, or a job file of our own. Plain data.
struct ImportedJob {
  std::string format;  // "TFJob"; empty for one of Shoal's job files
  std::string file;
  job::Job job;
  std::vector<ImportLoss> losses;
  bool references = false;  // commands still have Kubernetes' references, $(NAME), which
                            // FinishImport expands after --set has been applied
  // Roles without a command that cannot run the entry point of the job's image, and the reason.
  std::map<std::string, ImportLoss> commandless = {};
  job::FieldLocations places = {};  // of the job's fields; for foreign files only those of --set
};

// One job of a file with several documents.
struct JobInFile {
  int document = 0;  // from 1
  std::string name;  // may be empty
  std::string format;
};

// The jobs of a foreign file, in order. Empty for one of Shoal's job files, for a batch script, and
// for text that cannot be parsed.
std::vector<JobInFile> ListJobs(std::string_view text);

// Imports a foreign description. nullopt if no importer recognises the text, which may still be one
// of Shoal's job files. InvalidArgument lists up to ten errors with line and column, like
// job::ParseJob.
//
// The Job has the presets of its framework, but has not been validated: FinishImport, or its text
// (WriteImported) given to job::ParseJob, does that. `which` selects one of several jobs in the
// file by name or by the number of its document; it may be empty if there is only one.
Result<std::optional<ImportedJob>> ImportText(std::string_view text, const std::string& file,
                                              const std::string& which = "");

// Loads and validates a job file, Shoal's or foreign, of at most 1 MiB. `overrides` work as in
// job::ParseJob; for a foreign file they apply to the imported job. `which` as for ImportText.
Result<ImportedJob> LoadJobFile(const std::string& path,
                                const std::vector<std::string>& overrides = {},
                                const std::string& which = "");
// Applies `overrides`, expands references in commands and validates: the second half of
// LoadJobFile, for a job that was imported by other means.
Result<ImportedJob> FinishImport(ImportedJob imported, const std::vector<std::string>& overrides);

// The text that `shoal import` prints: the job file with a comment for every loss, before the field
// that it concerns.
std::string WriteImported(const ImportedJob& imported);
// "FILE:LINE:COL: FIELD: sentence".
std::string FormatLoss(const ImportedJob& imported, const ImportLoss& loss);

}  // namespace shoal::importer
