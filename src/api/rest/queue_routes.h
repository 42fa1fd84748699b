// The routes of the queues, which are a part of the table in routes.cc.
#pragma once

#include <vector>

#include "api/rest/route.h"

namespace shoal::api {

// `submission`: the fields of a job that is submitted.
std::vector<Route> QueueRoutes(std::vector<Parameter> submission);

}  // namespace shoal::api
