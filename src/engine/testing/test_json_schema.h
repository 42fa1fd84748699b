// For tests: checks requests against the server's own definition (JSON Schema as in OpenAPI). The
// definitions are in tests/golden.
#pragma once

#include <string>

#include "base/json.h"

namespace shoal::engine {

// Reads a file below tests/golden. If that fails, adds a test failure and returns an empty object.
json::object ReadGolden(const std::string& name);

// "" if the value matches the schema, else a description of the difference. `definitions`: targets
// of
// "$ref", may be empty. A field that a schema with properties does not list is a difference;
// formats and patterns are not checked.
std::string DescribeDifference(const json::value& value, const json::object& schema,
                               const std::string& where, const json::object& definitions = {});

}  // namespace shoal::engine
