// The requests about the models of teams.
#pragma once

#include <vector>

#include "api/rest/route.h"

namespace shoal::api {

std::vector<Route> ModelRoutes();

}  // namespace shoal::api
