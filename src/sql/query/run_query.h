// Runs a query in a process of its own and waits for it.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "sql/query/query_process.h"

namespace shoal::sql {

struct QueryRun {
  std::string program;  // of the child; its first argument is `sql-query`
  Duration time_limit{};
  std::function<bool()> stopped = nullptr;  // asked several times a second; true ends the query
};

// How a query ended.
struct QueryEnd {
  Status status;
  int64_t position = -1;                       // byte of the query; -1: none
  std::map<std::string, std::string> special;  // of a success: Table::special
};

// OK with the result in request.directory/kResultFile. DeadlineExceeded, Cancelled,
// ResourceExhausted if the child was killed, else the answer's error. Nothing of the child is left.
QueryEnd RunQuery(const QueryRequest& request, const QueryRun& run);

}  // namespace shoal::sql
