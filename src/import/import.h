// Foreign job descriptions in: TFJob, PyTorchJob, MPIJob, XGBoostJob and MXJob, Volcano Job,
// Marathon apps and groups, jobs of Metronome, batch scripts of Slurm, and dmlc-submit's command
// line, recognised by their own shape, as Shoal's Job.
//
// `shoal run` and `plan` load every file through LoadJobFile; `shoal import` prints what becomes of
// one. docs/import.md tells users field by field; docs/adr/0053 says why it is done so.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"
#include "job/text/errors.h"
#include "job/text/field_locations.h"

namespace shoal::importer {

// Something in a foreign file that the job does not carry.
struct ImportLoss {
  job::SourceLocation place;  // in the foreign file
  std::string field;          // "spec.runPolicy.ttlSecondsAfterFinished"
  std::string sentence;       // what it meant, why it is not kept, what to do instead
  std::string at;             // before which field of the job file it is told
  bool minor = false;         // changes nothing for the programs that run
  std::string engine;         // kept for this one; empty: for none
};

struct ImportedJob {
  std::string dialect;  // "TFJob"; empty for a job file of our own
  std::string file;
  job::Job job;
  std::vector<ImportLoss> losses;
  bool references = false;  // commands still have Kubernetes' references, $(NAME), which
                            // FinishImport expands when it knows the variables that --set gives
  // Roles without a command that cannot start the entry point of the job's image, and why.
  std::map<std::string, ImportLoss> commandless = {};
  job::FieldLocations places = {};  // of the job's fields; in a foreign file those that --set gave
};

// A job among the documents of a foreign file.
struct JobInFile {
  int document = 0;  // from 1
  std::string name;  // may be empty
  std::string dialect;
};

// In the file's order; empty for a job file of our own, a batch script, and what is no file at all.
std::vector<JobInFile> ListJobs(std::string_view text);

// Nothing if the text is none of the dialects, which says nothing of whether it is a job file.
// InvalidArgument has up to ten errors with line and column, like job::ParseJob's. The Job has its
// framework's presets, but has not been validated: its text (WriteImported) goes through ParseJob.
//
// `which`: of several jobs in the file the name of one, or the number of its document; empty: the
// only one.
Result<std::optional<ImportedJob>> ImportText(std::string_view text, const std::string& file,
                                              const std::string& which = "");

// Any job file, ours or foreign (at most 1 MiB), validated, with `overrides` as for job::ParseJob;
// for a foreign one they change the job that it is imported as. `which` as for ImportText.
Result<ImportedJob> LoadJobFile(const std::string& path,
                                const std::vector<std::string>& overrides = {},
                                const std::string& which = "");
// The second half of it, for a job that was imported by other means.
Result<ImportedJob> FinishImport(ImportedJob imported, const std::vector<std::string>& overrides);

// The job file that `shoal import` prints: the job, and a comment for every loss where it matters.
std::string WriteImported(const ImportedJob& imported);
// "FILE:LINE:COL: FIELD: sentence".
std::string FormatLoss(const ImportedJob& imported, const ImportLoss& loss);

}  // namespace shoal::importer
