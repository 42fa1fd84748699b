// An app's health checks, as a role's `health`; a part of marathon.cc.
#pragma once

#include <string>

#include "dialect/import/importer.h"

namespace shoal::dialect {

// After the role's ports are known. `exports`: what stands before the program's command, so that
// it, and a check's command, find Marathon's names for them; may be empty.
void ReadMarathonHealth(Section* app, const std::string& exports, job::Role* role);

}  // namespace shoal::dialect
