// Access to jobs for the commands.
#pragma once

#include <memory>

#include "base/status.h"
#include "cli/command.h"
#include "controller/jobs/jobs.h"

namespace shoal::cli {

// Opens the jobs of the server that --server, $SHOAL_SERVER or the login names, else those of this
// machine's state directory. Errors are those of its store; Unauthenticated without a token.
Result<std::unique_ptr<controller::Jobs>> OpenJobs(const Context& context);

}  // namespace shoal::cli
