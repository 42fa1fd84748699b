// What is damaged in the store's file, beyond what reading the jobs shows. Used by `shoal doctor`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::controller {

// One sentence each; none if the file is whole: its pages (SQLite's quick_check), and every event
// and task is JSON. Reads all of it and changes nothing. An error if the file cannot be opened or
// read.
Result<std::vector<std::string>> FindStoreDamage(const std::filesystem::path& database);

}  // namespace shoal::controller
