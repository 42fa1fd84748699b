// Runs a query in a process of its own and waits for it.
#pragma once

#include <functional>
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

// How a query failed.
struct QueryFailure {
  Status status;
  int64_t position = -1;  // byte of the query; -1: none
};

// OK with the result in request.directory/kResultFile. DeadlineExceeded, Cancelled,
// ResourceExhausted if the child was killed, else the answer's error. Nothing of the child is left.
QueryFailure RunQuery(const QueryRequest& request, const QueryRun& run);

}  // namespace shoal::sql
