// For tests: whether what is sent is as the other side's own definition (JSON Schema, as OpenAPI
// uses it) says. The definitions are in tests/golden.
#pragma once

#include <string>

#include "base/json.h"

namespace shoal::engine {

// A file below tests/golden. A failed check, and nothing, if it cannot be read.
json::object ReadGolden(const std::string& name);

// "" if the value is as the schema says, else what is wrong. `definitions`: what its "$ref" name,
// may be empty. Fields that a schema with properties does not name are wrong; formats and patterns
// are not looked at.
std::string DescribeDifference(const json::value& value, const json::object& schema,
                               const std::string& where, const json::object& definitions = {});

}  // namespace shoal::engine
