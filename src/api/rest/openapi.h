// The OpenAPI 3.1 document of the API and the table of rights in docs/rest.md, derived from the
// routes. A test compares the document's table with docs/rest.md; SHOAL_REGENERATE=1 api_test
// rewrites it.
#pragma once

#include <string>

#include "base/json.h"

namespace shoal::api {

// `version`: of the program.
json::object OpenApiDocument(const std::string& version);
// In Markdown: every request with its role, scope and purpose.
std::string RightsTable();

}  // namespace shoal::api
