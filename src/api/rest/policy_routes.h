// The part of the table of requests (routes.cc) for policies of teams (docs/policies.md).
#pragma once

#include <vector>

#include "api/rest/route.h"

namespace shoal::api {

std::vector<Route> PolicyRoutes();

}  // namespace shoal::api
