#include "sql/query/duckdb_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/json.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;

constexpr int kSuccess = 0;  // DuckDBSuccess
constexpr int kSelect = 1;   // DUCKDB_STATEMENT_TYPE_SELECT
constexpr const char* kName = "libduckdb.so";

// duckdb_result; its fields are deprecated or internal.
struct QueryResult {
  uint64_t counts[3] = {};
  void* pointers[3] = {};
};

// With errors_as_json DuckDB's messages are JSON.
void ReadError(const char* text, DuckDbError* error) {
  error->message = text == nullptr ? "DuckDB gave no reason" : text;
  error->position = -1;
  const Result<json::object> object = ParseJsonObject(error->message);
  if (!object.ok()) return;
  error->message = GetStringOr(*object, "exception_message", error->message);
  const std::string position = GetStringOr(*object, "position", "");
  if (!position.empty()) error->position = std::strtoll(position.c_str(), nullptr, 10);
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

// The functions of the library, by their names in duckdb.h.
struct DuckDbFunctions {
  void* library = nullptr;
  const char* (*library_version)() = nullptr;
  int (*open_ext)(const char* path, void** database, void* config, char** error) = nullptr;
  void (*close)(void** database) = nullptr;
  int (*connect)(void* database, void** connection) = nullptr;
  void (*disconnect)(void** connection) = nullptr;
  int (*query)(void* connection, const char* sql, QueryResult* result) = nullptr;
  const char* (*result_error)(QueryResult* result) = nullptr;
  void (*destroy_result)(QueryResult* result) = nullptr;
  uint64_t (*extract_statements)(void* connection, const char* sql, void** statements) = nullptr;
  const char* (*extract_statements_error)(void* statements) = nullptr;
  int (*prepare_extracted_statement)(void* connection, void* statements, uint64_t index,
                                     void** prepared) = nullptr;
  const char* (*prepare_error)(void* prepared) = nullptr;
  int (*prepared_statement_type)(void* prepared) = nullptr;
  uint64_t (*nparams)(void* prepared) = nullptr;
  void (*destroy_prepare)(void** prepared) = nullptr;
  void (*destroy_extracted)(void** statements) = nullptr;

  // Sets `function` to the library's function of this name.
  template <typename Function>
  Status Find(const char* name, Function* function) {
    void* const found = ::dlsym(library, name);
    if (found == nullptr)
      return FailedPrecondition(std::string("the library lacks ") + name +
                                "; take libduckdb.so of DuckDB 1.1 or later");
    *function = reinterpret_cast<Function>(found);
    return Status::Ok();
  }

  Status FindAll() {
    TRY(Find("duckdb_library_version", &library_version));
    TRY(Find("duckdb_open_ext", &open_ext));
    TRY(Find("duckdb_close", &close));
    TRY(Find("duckdb_connect", &connect));
    TRY(Find("duckdb_disconnect", &disconnect));
    TRY(Find("duckdb_query", &query));
    TRY(Find("duckdb_result_error", &result_error));
    TRY(Find("duckdb_destroy_result", &destroy_result));
    TRY(Find("duckdb_extract_statements", &extract_statements));
    TRY(Find("duckdb_extract_statements_error", &extract_statements_error));
    TRY(Find("duckdb_prepare_extracted_statement", &prepare_extracted_statement));
    TRY(Find("duckdb_prepare_error", &prepare_error));
    TRY(Find("duckdb_prepared_statement_type", &prepared_statement_type));
    TRY(Find("duckdb_nparams", &nparams));
    TRY(Find("duckdb_destroy_prepare", &destroy_prepare));
    return Find("duckdb_destroy_extracted", &destroy_extracted);
  }
};

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
