// The rows of the table of requests (routes.cc) about webhooks.
#pragma once

#include <vector>

#include "api/rest/route.h"

namespace shoal::api {

std::vector<Route> WebhookRoutes();

}  // namespace shoal::api
