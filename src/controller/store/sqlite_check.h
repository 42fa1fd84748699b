// Finds damage in the store's file beyond unreadable jobs. Used by `shoal doctor`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::controller {

// One sentence per problem; empty if the file is intact, which means that its pages pass SQLite's
// quick_check and every event and task is JSON. Reads the whole file and changes nothing. An error
// if the file cannot be opened or read.
Result<std::vector<std::string>> FindStoreDamage(const std::filesystem::path& database);

}  // namespace shoal::controller
