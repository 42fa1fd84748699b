// The rows of the table of requests (routes.cc) about the catalogue.
#pragma once

#include <vector>

#include "api/rest/route.h"

namespace shoal::api {

std::vector<Route> CatalogRoutes();

}  // namespace shoal::api
