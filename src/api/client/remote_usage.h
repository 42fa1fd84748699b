// controller::Jobs::Usage over a server.
#pragma once

#include "api/client/api_client.h"
#include "base/status.h"
#include "controller/usage/usage.h"

namespace shoal::api {

// What the user may see of it; `query.teams` has at most one team. Blocks.
Result<controller::UsageTable> RemoteUsage(const ApiClient& client,
                                           const controller::UsageQuery& query);

}  // namespace shoal::api
