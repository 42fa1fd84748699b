// Runs a parsed job in the foreground: controller, signals and display. `shoal run`, `shoal
// train` and `shoal resume` end here, so there is one way for all.
#pragma once

#include <string>

#include "cli/command.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"

namespace shoal::cli {

struct RunOptions {
  bool quiet = false;
  std::string engine;               // of a new job: its name
  job::FieldLocations places = {};  // of a new job that comes from a file
  std::string folder = {};  // of a new job: where its programs start; empty: the working directory
};

// Its paths are absolute, or seen from the working directory. CheckJob (load_job.h) is asked before
// it is submitted. Gives the exit code: 0 succeeded, 1 failed, 5 failed because its engine cannot
// be reached, 130 cancelled or suspended, others if it could not be submitted.
int RunJob(const Context& context, job::Job job, const RunOptions& options);

// The same with a suspended job: the one whose name begins so.
int ResumeJob(const Context& context, const std::string& prefix, const RunOptions& options);

}  // namespace shoal::cli
