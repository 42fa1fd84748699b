// Imports an app's health checks as the role's `health`. Used by marathon.cc.
#pragma once

#include <string>

#include "import/conversion/job_builder.h"

namespace shoal::importer {

// Call when the role's ports are known. `exports` is the shell prefix that defines Marathon's port
// variables for the program and for check commands; may be empty.
void ReadMarathonHealth(FieldReader* app, const std::string& exports, job::Role* role);

}  // namespace shoal::importer
