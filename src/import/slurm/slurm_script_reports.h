// What of a batch script does not mean the same in a job, as comments. Called by slurm_script.cc.
#pragma once

#include <string>

#include "import/conversion/diagnostics.h"
#include "import/slurm/slurm_options.h"
#include "import/slurm/slurm_script_info.h"
#include "job/spec/job.h"

namespace shoal::importer {

struct SlurmReportOptions {
  bool array = false;
  bool exports = false;       // --export is given
  std::string export_option;  // its value
};

// Adds the comments at `at`, the path of the role's command.
void ReportSlurmScript(const SlurmScriptInfo& script, const SlurmReportOptions& options,
                       const std::string& at, Diagnostics* diagnostics);

// Reports options that are not kept, and passes others to the job's slurm.options.
void ReportSlurmOptions(const SlurmOptionValues& options, job::Job* job, Diagnostics* diagnostics);

}  // namespace shoal::importer
