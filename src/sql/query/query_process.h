// The process of a query: DuckDB in a sandbox. It reads a request from standard input, writes the
// result to a Parquet file and an answer to standard output, and ends.
//
// It may read the files of the named tables and write the result, and nothing else: DuckDB's access
// to files is limited to these paths before the query is seen, extensions are not loaded, and the
// process has limits of memory, no network where the system permits it, and dies with its parent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "sql/query/model_functions.h"

namespace shoal::sql {

// Plain value, as JSON on the pipe between the two processes.
struct QueryRequest {
  std::string library;
  std::string directory;           // that the result and intermediate files are written to
  std::vector<std::string> files;  // that may be read
  std::vector<std::string> views;  // statements that make the tables
  std::vector<ModelFunction> functions;
  std::string query;
  uint64_t memory_bytes = 0;
  uint64_t spill_bytes = 0;  // of intermediate files
  uint64_t threads = 1;
};

inline constexpr const char* kResultFile = "result.parquet";
inline constexpr size_t kMaxRequest = size_t{64} << 20;

json::object ToJson(const QueryRequest& request);
Result<QueryRequest> ParseQueryRequest(const json::object& object);

// A text as a literal of SQL: with quotes, those within doubled.
std::string SqlLiteral(std::string_view text);
// A name of SQL, likewise.
std::string SqlName(std::string_view text);

// What the process answers: {"special": {column: type}} for success, with the columns that are
// texts in the file and have this type in SQL, or an error with a code, a message and the byte of
// the query ("position", -1 for none).
json::object RunQueryRequest(const QueryRequest& request);

// Withholds from this process what the system can withhold: core files, new rights and, where the
// system permits it, the network. Before it has a second thread.
void LeaveNetwork();
// Bytes that this process and each of its children may allocate.
void LimitMemory(uint64_t bytes);

// The body of the hidden command. Returns the exit code; 0 also for a query with an error.
int RunQueryProcess();

}  // namespace shoal::sql
