// Tables of a session as DuckDB reads them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "sql/query/query_process.h"
#include "sql/tables/table.h"

namespace shoal::sql {

// Adds the files and views of those tables whose names stand in the query to `request`. A table in
// a format that DuckDB does not read, or of a store, is copied to a file that `copies` keeps.
// `stopped`: as of SaveOptions.
Status AddTables(const std::map<std::string, Table>& tables, const std::function<bool()>& stopped,
                 QueryRequest* request, std::vector<std::shared_ptr<const TempDir>>* copies);

// Adds those functions whose names stand in the query.
void AddFunctions(const std::map<std::string, ModelFunction>& functions, QueryRequest* request);

}  // namespace shoal::sql
