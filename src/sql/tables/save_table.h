// Writes a table to a file or a directory of parts, which appear whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "sql/syntax/ast.h"
#include "sql/tables/table.h"

namespace shoal::sql {

// The formats that tables are saved in, by the names that statements use.
const std::vector<std::string>& SaveFormats();

struct SaveOptions {
  SaveMode mode = SaveMode::kErrorIfExists;
  data::RecordFormat format = data::RecordFormat::kCsv;
  std::filesystem::path scratch;            // a directory of the session
  std::function<bool()> stopped = nullptr;  // asked between records; true ends it as Cancelled
};

struct Saved {
  bool ignored = false;  // there was something, and the mode is kIgnore
  uint64_t rows = 0;
};

// `path` with an ending of the format (people.csv) is one file, any other a directory of files
// part-NNNNN, with an empty file _SUCCESS. kOverwrite replaces in one step; kAppend adds a part, or
// to a file its rows, if it has the same columns. AlreadyExists as the mode says;
// FailedPrecondition for a directory that holds anything but parts of tables; InvalidArgument for
// values that the format cannot hold, and for a URI.
Result<Saved> SaveTable(const Table& table, const std::string& path, const SaveOptions& options);

}  // namespace shoal::sql
