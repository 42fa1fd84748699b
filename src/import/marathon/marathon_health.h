// An app's health checks, as a role's `health`; a part of marathon.cc.
#pragma once

#include <string>

#include "import/conversion/importer.h"

namespace shoal::importer {

// After the role's ports are known. `exports`: what stands before the program's command, so that
// it, and a check's command, find Marathon's names for them; may be empty.
void ReadMarathonHealth(FieldReader* app, const std::string& exports, job::Role* role);

}  // namespace shoal::importer
