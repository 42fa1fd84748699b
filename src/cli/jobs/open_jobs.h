// Access to jobs and to a server for the commands.
#pragma once

#include <memory>
#include <string_view>

#include "api/client/api_client.h"
#include "base/status.h"
#include "cli/command.h"
#include "controller/jobs/jobs.h"

namespace shoal::cli {

// Opens the jobs of the server that --server, $SHOAL_SERVER or the login names, else those of this
// machine's state directory. Errors are those of its store; Unauthenticated without a token.
Result<std::unique_ptr<controller::Jobs>> OpenJobs(const Context& context);

// The server that --server, $SHOAL_SERVER or the login names. FailedPrecondition without one:
// `what`
// ("policies") are kept by a server only.
Result<std::unique_ptr<api::ApiClient>> OpenServer(const Context& context, std::string_view what);

}  // namespace shoal::cli
