// Runs a validated job in the foreground: controller, signals and display. `shoal run`, `shoal
// train` and `shoal resume` end here, so there is one way for all.
#pragma once

#include <string>

#include "cli/command.h"
#include "job/job.h"

namespace shoal::cli {

struct RunOptions {
  bool quiet = false;
  std::string engine;  // of a new job: its name
};

// Gives the exit code: 0 succeeded, 1 failed, 130 cancelled or suspended, others if it could not be
// submitted.
int RunJob(const Context& context, job::Job job, const RunOptions& options);

// The same with a suspended job: the one whose name begins so.
int ResumeJob(const Context& context, const std::string& prefix, const RunOptions& options);

}  // namespace shoal::cli
