// The search over the logs of a server's jobs, for RemoteJobs.
#pragma once

#include "api/client/api_client.h"
#include "base/status.h"
#include "controller/files/log_search.h"

namespace shoal::api {

// See controller::Jobs::SearchLogs. Asks again where the server's limits of a reply end it.
Status SearchRemoteLogs(const ApiClient& client, const controller::LogSearchRequest& request,
                        const controller::OnFoundLine& on_found);

}  // namespace shoal::api
