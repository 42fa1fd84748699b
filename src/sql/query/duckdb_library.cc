#include "sql/query/duckdb_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/json.h"
#include "sql/query/duckdb_functions.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;

constexpr int kSuccess = DuckDbFunctions::kSuccess;
constexpr int kSelect = 1;  // DUCKDB_STATEMENT_TYPE_SELECT
constexpr const char* kName = "libduckdb.so";

// With errors_as_json DuckDB's messages are JSON.
void ReadError(const char* text, DuckDbError* error) {
  error->message = text == nullptr ? "DuckDB gave no reason" : text;
  error->position = -1;
  // "Parser Error: {…}" of some.
  const size_t brace = std::min(error->message.find('{'), error->message.size());
  const Result<json::object> object = ParseJsonObject(error->message.substr(brace));
  if (!object.ok()) return;
  error->message = GetStringOr(*object, "exception_message", error->message);
  const std::string position = GetStringOr(*object, "position", "");
  if (!position.empty()) error->position = std::strtoll(position.c_str(), nullptr, 10);
}

// The name of a type (duckdb_type) whose values are numbers in a Parquet file and texts for people.
std::string SpecialType(int type) {
  switch (type) {
    case 12:
      return "TIMESTAMP";
    case 13:
      return "DATE";
    case 14:
      return "TIME";
    case 15:
      return "INTERVAL";
    case 20:
      return "TIMESTAMP_S";
    case 21:
      return "TIMESTAMP_MS";
    case 22:
      return "TIMESTAMP_NS";
    case 27:
      return "UUID";
    case 29:
      return "BIT";
    case 30:
      return "TIMETZ";
    case 31:
      return "TIMESTAMPTZ";
    default:
      return "";
  }
}

// The user's cache directory; empty if there is none.
fs::path CacheFolder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return cache;
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return fs::path(home) / ".cache";
  return {};
}

}  // namespace

DuckDb::DuckDb(std::unique_ptr<DuckDbFunctions> functions) : functions_(std::move(functions)) {}

DuckDb::~DuckDb() {
  if (connection_ != nullptr) functions_->disconnect(&connection_);
  if (database_ != nullptr) functions_->close(&database_);
}

std::string DuckDb::version() const { return functions_->library_version(); }

Result<std::unique_ptr<DuckDb>> DuckDb::Open(const std::string& library) {
  auto functions = std::make_unique<DuckDbFunctions>();
  // Stays open to the end of the process: DuckDB's threads may still be in it.
  functions->library = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (functions->library == nullptr) {
    const char* const reason = ::dlerror();
    return NotFound(reason == nullptr ? library : reason);
  }
  TRY(functions->FindAll().With(library));
  std::unique_ptr<DuckDb> duck(new DuckDb(std::move(functions)));
  DuckDbFunctions& call = *duck->functions_;
  char* reason = nullptr;
  if (call.open_ext(nullptr, &duck->database_, nullptr, &reason) != kSuccess)
    return Internal(std::string("DuckDB does not begin") +
                    (reason == nullptr ? "" : std::string(": ") + reason));
  if (call.connect(duck->database_, &duck->connection_) != kSuccess)
    return Internal("DuckDB takes no connection");
  return duck;
}

bool DuckDb::Execute(const std::string& sql, DuckDbError* error) {
  QueryResult result;
  const bool good = functions_->query(connection_, sql.c_str(), &result) == kSuccess;
  if (!good) ReadError(functions_->result_error(&result), error);
  functions_->destroy_result(&result);
  return good;
}

bool DuckDb::CheckSelect(const std::string& sql, DuckDbError* error) {
  DuckDbFunctions& call = *functions_;
  void* statements = nullptr;
  void* prepared = nullptr;
  bool good = false;
  const uint64_t count = call.extract_statements(connection_, sql.c_str(), &statements);
  if (count == 0) {
    ReadError(call.extract_statements_error(statements), error);
  } else if (count > 1) {
    error->message = "got " + std::to_string(count) + " statements, expected one query";
  } else if (call.prepare_extracted_statement(connection_, statements, 0, &prepared) != kSuccess) {
    ReadError(call.prepare_error(prepared), error);
  } else if (call.prepared_statement_type(prepared) != kSelect) {
    error->message = "this is no query; expected select or with … select";
  } else if (call.nparams(prepared) != 0) {
    error->message = "a query has no parameters ? and $1; use ${variables}";
  } else {
    good = true;
  }
  if (prepared != nullptr) call.destroy_prepare(&prepared);
  if (statements != nullptr) call.destroy_extracted(&statements);
  return good;
}

bool DuckDb::DescribeSelect(const std::string& sql, std::vector<ResultColumn>* columns,
                            DuckDbError* error) {
  QueryResult result;
  const std::string none = "SELECT * FROM (" + sql + "\n) LIMIT 0";
  const bool good = functions_->query(connection_, none.c_str(), &result) == kSuccess;
  if (!good) ReadError(functions_->result_error(&result), error);
  const uint64_t count = good ? functions_->column_count(&result) : 0;
  for (uint64_t i = 0; i < count; ++i)
    columns->push_back(
        {functions_->column_name(&result, i), SpecialType(functions_->column_type(&result, i))});
  functions_->destroy_result(&result);
  return good;
}

std::string FindDuckDbLibrary(const std::string& program) {
  const char* const named = std::getenv("SHOAL_DUCKDB");
  if (named != nullptr && *named != 0) return named;
  std::vector<fs::path> places;
  if (!program.empty()) {
    const fs::path folder = fs::path(program).parent_path();
    places = {folder / kName, folder.parent_path() / "lib" / kName};
  }
  const fs::path cache = CacheFolder();
  if (!cache.empty()) places.push_back(cache / "shoal" / "duckdb" / kName);
  for (const fs::path& place : places) {
    std::error_code ignored;  // what cannot be looked at is not there
    if (fs::exists(place, ignored)) return place.string();
  }
  return kName;
}

}  // namespace shoal::sql
