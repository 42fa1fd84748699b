// The routes of SQL sessions (docs/sql.md).
#pragma once

#include <vector>

#include "api/rest/route.h"

namespace shoal::api {

std::vector<Route> SqlRoutes();

}  // namespace shoal::api
