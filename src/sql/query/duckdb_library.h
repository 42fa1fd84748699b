// DuckDB's C interface, from the shared library libduckdb.so, which is opened at run time by the
// process of a query (query_process.h) and by nothing else (docs/adr/0401).
//
// The declarations follow duckdb.h of versions 1.1 to 1.5; they are part of its stable interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace shoal::sql {

struct DuckDbFunctions;

// An error of DuckDB, with the byte of the query where it found it.
struct DuckDbError {
  std::string message;
  int64_t position = -1;  // -1: none
};

// A column of a query's result.
struct ResultColumn {
  std::string name;
  // For types that JSON has no values of, such as dates: their name in SQL; else empty.
  std::string special;
};

// What a function of texts returns for one of them; monostate: NULL.
using TextValue = std::variant<std::monostate, std::string, double, std::vector<float>>;

// A scalar function of one text that C++ code computes.
struct TextFunction {
  enum class Returns : uint8_t { kText, kNumber, kNumbers };
  std::string name;
  Returns returns = Returns::kNumber;
  // Called with the texts that are not NULL, by several threads at once. The values have the kind
  // of `returns`, one for each text.
  std::function<Result<std::vector<TextValue>>(const std::vector<std::string_view>& texts)> call;
};

// A database in memory with one connection. Not thread-safe.
class DuckDb {
 public:
  // Opens the library and a database. NotFound if there is no library of this name;
  // FailedPrecondition if it is no DuckDB.
  static Result<std::unique_ptr<DuckDb>> Open(const std::string& library);
  ~DuckDb();
  DuckDb(const DuckDb&) = delete;
  DuckDb& operator=(const DuckDb&) = delete;

  // Executes one statement; false after an error.
  bool Execute(const std::string& sql, DuckDbError* error);
  // Whether the text is exactly one SELECT, and names what exists; false after an error.
  bool CheckSelect(const std::string& sql, DuckDbError* error);
  // The columns of a SELECT's result, without its rows; false after an error.
  bool DescribeSelect(const std::string& sql, std::vector<ResultColumn>* columns,
                      DuckDbError* error);
  std::string version() const;
  // Makes the function available to statements. FailedPrecondition if the library is too old.
  Status Register(TextFunction function);

 private:
  explicit DuckDb(std::unique_ptr<DuckDbFunctions> functions);

  const std::unique_ptr<DuckDbFunctions> functions_;
  void* database_ = nullptr;
  void* connection_ = nullptr;
};

// The library that queries use: $SHOAL_DUCKDB, else "libduckdb.so" beside or in ../lib of
// `program`, else in the user's cache, where script/bootstrap puts it, else the name alone, for the
// system's loader.
std::string FindDuckDbLibrary(const std::string& program);

}  // namespace shoal::sql
