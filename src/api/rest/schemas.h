// The JSON Schemas of what the API returns, for openapi.cc.
#pragma once

#include "base/json.h"

namespace shoal::api {

// Name → schema, for components.schemas of an OpenAPI document.
json::object ReplySchemas();

}  // namespace shoal::api
