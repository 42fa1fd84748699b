// Runs a validated job in the foreground: controller, signals and display. `shoal run` and `shoal
// train` end here, so there is one way for both.
#pragma once

#include "cli/command.h"
#include "job/job.h"

namespace shoal::cli {

struct RunOptions {
  bool quiet = false;
};

// Gives the exit code: 0 succeeded, 1 failed, 130 cancelled, others if it could not be submitted.
int RunJob(const Context& context, job::Job job, const RunOptions& options);

}  // namespace shoal::cli
