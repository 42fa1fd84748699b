// `--dry-run`: what would become of a job on the server, without submitting it.
#pragma once

#include "cli/command.h"
#include "controller/jobs/jobs.h"

namespace shoal::cli {

// Prints whether the job would start now, else why not, when, and which changes would start it.
// Returns the exit code: 0, also for a job that would wait; 1 for one that could never start.
int DryRun(const Context& context, controller::Jobs* jobs, const controller::NewRun& run);

}  // namespace shoal::cli
