// Runs a parsed job in the foreground with controller, signals and display. Common end of `shoal
// run`, `shoal train` and `shoal resume`.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/command.h"
#include "controller/store/job_record.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"

namespace shoal::cli {

struct RunOptions {
  bool quiet = false;
  std::string engine;               // name; for a new job
  job::FieldLocations places = {};  // for a new job from a file
  std::string folder = {};  // for a new job: where its programs start; empty: the working directory
  bool registers_model = true;  // a success adds a version of its model (registry_place.h)
};

// Submits and runs a job. Relative paths refer to the working directory. CheckJob (load_job.h)
// validates it before submission. Returns the exit code: 0 succeeded, 1 failed, 5 failed because
// its engine cannot be reached, 130 cancelled or suspended, others if it could not be submitted.
int RunJob(const Context& context, job::Job job, const RunOptions& options);

// How a job ended that ran in the foreground.
struct RunEnd {
  int exit_code = 0;  // as of RunJob
  controller::JobRecord record;
};

// RunJob for a caller that goes on afterwards. An error, which is not printed, if the job could not
// be submitted; the end of a job is printed.
Result<RunEnd> RunJobToEnd(const Context& context, job::Job job, const RunOptions& options);

// Resumes and runs a suspended job, named by an unambiguous prefix.
int ResumeJob(const Context& context, const std::string& prefix, const RunOptions& options);

}  // namespace shoal::cli
