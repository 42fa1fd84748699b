// Rows of a table in parts, one for each worker.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "base/status.h"
#include "sql/tables/table.h"

namespace shoal::sql {

// Makes the directories and writes a file part-00000.json or .csv to each: row i goes to directory
// i modulo their number. Memory: at most 64 MiB. Cancelled when `stopped` says so.
Status WriteRowParts(const Table& table, bool csv,
                     const std::vector<std::filesystem::path>& directories,
                     const std::function<bool()>& stopped);

}  // namespace shoal::sql
