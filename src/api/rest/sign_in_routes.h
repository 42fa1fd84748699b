// The part of the table of requests (routes.cc) by which people sign in (api/oidc).
#pragma once

#include <vector>

#include "api/rest/route.h"

namespace shoal::api {

std::vector<Route> SignInRoutes();

}  // namespace shoal::api
