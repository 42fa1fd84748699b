// The queues of a server over its REST interface.
#pragma once

#include <memory>
#include <string>

#include "api/client/api_client.h"
#include "controller/jobs/queues.h"

namespace shoal::api {

// `client` must outlive it. `team`: of jobs that are tried; empty: the user's only one.
std::unique_ptr<controller::Queues> MakeRemoteQueues(const ApiClient* client, std::string team);

}  // namespace shoal::api
