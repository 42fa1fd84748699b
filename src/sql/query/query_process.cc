#include "sql/query/query_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "sql/query/duckdb_library.h"

namespace shoal::sql {
namespace {

std::string ListLiteral(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) list += (list.size() > 1 ? "," : "") + SqlLiteral(text);
  return list + "]";
}

json::object ErrorAnswer(Code code, const std::string& message, int64_t position = -1) {
  return {{"code", static_cast<int>(code)}, {"error", message}, {"position", position}};
}

// The settings after which only the request's files can be read, and which the query cannot undo.
std::vector<std::string> SandboxStatements(const QueryRequest& request) {
  const auto bytes = [](uint64_t count) { return SqlLiteral(std::to_string(count) + "B"); };
  return {
      "SET errors_as_json = true",
      "SET autoinstall_known_extensions = false",
      "SET autoload_known_extensions = false",
      "SET allowed_paths = " + ListLiteral(request.files),
      "SET allowed_directories = [" + SqlLiteral(request.directory + "/") + "]",
      "SET temp_directory = " + SqlLiteral(request.directory + "/spill"),
      "SET max_temp_directory_size = " + bytes(request.spill_bytes),
      "SET memory_limit = " + bytes(request.memory_bytes),
      "SET threads = " + std::to_string(request.threads),
      "SET preserve_insertion_order = true",
      "SET enable_external_access = false",
      "SET lock_configuration = true",
  };
}

rlim_t SizeOfModels(const QueryRequest& request) {
  rlim_t bytes = 0;
  for (const ModelFunction& function : request.functions) {
    std::error_code ignored;  // what cannot be looked at is reported when it is read
    for (const auto& entry : std::filesystem::directory_iterator(function.model, ignored)) {
      if (entry.is_regular_file(ignored)) bytes += entry.file_size(ignored);
    }
  }
  return bytes;
}

// The query with its dates and times as texts, which are then in `special` with their types. On
// lines of its own, since it may end with a comment.
std::string WithTexts(const std::string& query, const std::vector<ResultColumn>& columns,
                      json::object* special) {
  std::string replaced;
  std::set<std::string> names;
  for (const ResultColumn& column : columns) {
    if (!names.insert(column.name).second) return query + "\n";  // no name tells them apart
    if (column.special.empty()) continue;
    const std::string name = SqlName(column.name);
    replaced += (replaced.empty() ? "" : ", ") + ("CAST(" + name + " AS VARCHAR) AS " + name);
    (*special)[column.name] = column.special;
  }
  if (replaced.empty()) return query + "\n";
  return "SELECT * REPLACE (" + replaced + ") FROM (" + query + "\n)";
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace

std::string SqlLiteral(std::string_view text) {
  std::string literal = "'";
  for (const char c : text) {
    if (c == '\'') literal += '\'';
    literal += c;
  }
  return literal + "'";
}

std::string SqlName(std::string_view text) {
  std::string name = "\"";
  for (const char c : text) {
    if (c == '"') name += '"';
    name += c;
  }
  return name + "\"";
}

json::object ToJson(const QueryRequest& request) {
  json::array functions;
  for (const ModelFunction& function : request.functions) functions.push_back(function.ToJson());
  return {{"functions", std::move(functions)},
          {"library", request.library},
          {"directory", request.directory},
          {"files", json::array(request.files.begin(), request.files.end())},
          {"views", json::array(request.views.begin(), request.views.end())},
          {"query", request.query},
          {"memory", request.memory_bytes},
          {"spill", request.spill_bytes},
          {"threads", request.threads}};
}

Result<QueryRequest> ParseQueryRequest(const json::object& object) {
  QueryRequest request;
  TRY_ASSIGN(request.library, GetString(object, "library"));
  TRY_ASSIGN(request.directory, GetString(object, "directory"));
  TRY_ASSIGN(request.query, GetString(object, "query"));
  TRY_ASSIGN(const int64_t memory, GetInt(object, "memory"));
  TRY_ASSIGN(const int64_t spill, GetInt(object, "spill"));
  TRY_ASSIGN(const int64_t threads, GetInt(object, "threads"));
  request.memory_bytes = static_cast<uint64_t>(memory);
  request.spill_bytes = static_cast<uint64_t>(spill);
  request.threads = static_cast<uint64_t>(threads);
  for (auto* const list : {&request.files, &request.views}) {
    const char* const name = list == &request.files ? "files" : "views";
    const auto field = object.find(name);
    if (field == object.end() || !field->value().is_array())
      return InvalidArgument(std::string(name) + ": missing");
    for (const json::value& text : field->value().get_array()) {
      if (!text.is_string()) return InvalidArgument(std::string(name) + ": expected texts");
      list->emplace_back(text.get_string());
    }
  }
  const auto functions = object.find("functions");
  if (functions == object.end() || !functions->value().is_array())
    return InvalidArgument("functions: missing");
  for (const json::value& one : functions->value().get_array()) {
    TRY_ASSIGN(ModelFunction function, ParseModelFunction(one));
    request.functions.push_back(std::move(function));
  }
  return request;
}

json::object RunQueryRequest(const QueryRequest& request) {
  auto opened = DuckDb::Open(request.library);
  if (!opened.ok()) {
    const std::string sentence =
        "queries need DuckDB's library libduckdb.so, version 1.2 or later: put it into "
        "~/.cache/shoal/duckdb, or name it with SHOAL_DUCKDB=/path/libduckdb.so; `npm pack "
        "@duckdb/node-bindings-linux-x64` fetches an archive that holds it; " +
        opened.status().message();
    return ErrorAnswer(Code::kFailedPrecondition, sentence);
  }
  DuckDb& duck = **opened;
  DuckDbError error;
  for (const std::string& statement : SandboxStatements(request)) {
    // An older or newer DuckDB without one of the settings is no sandbox.
    if (!duck.Execute(statement, &error))
      return ErrorAnswer(Code::kFailedPrecondition, "DuckDB " + duck.version() + " refuses `" +
                                                        statement.substr(0, 80) +
                                                        "`: " + error.message);
  }
  for (const ModelFunction& function : request.functions) {
    const Status added = AddModelFunction(function, request.directory, &duck);
    if (!added.ok())
      return ErrorAnswer(added.code(), "the function " + function.name + ": " + added.message());
  }
  for (const std::string& view : request.views) {
    if (!duck.Execute(view, &error)) return ErrorAnswer(Code::kInvalidArgument, error.message);
  }
  if (!duck.CheckSelect(request.query, &error))
    return ErrorAnswer(Code::kInvalidArgument, error.message, error.position);
  std::vector<ResultColumn> columns;
  if (!duck.DescribeSelect(request.query, &columns, &error))
    return ErrorAnswer(Code::kAborted, error.message);
  json::object special;
  const std::string copy = "COPY (" + WithTexts(request.query, columns, &special) + ") TO " +
                           SqlLiteral(request.directory + "/" + kResultFile) + " (FORMAT parquet)";
  if (!duck.Execute(copy, &error)) return ErrorAnswer(Code::kAborted, error.message);
  return {{"special", std::move(special)}};
}

void LeaveNetwork() {
  const struct rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // Refused in some containers; a query has no function that opens a connection anyway.
  const int refused = ::unshare(::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET);
  static_cast<void>(refused);
}

void LimitMemory(uint64_t bytes) {
  // A sanitizer's own tables would count here, with terabytes.
  if (kSanitized) return;
  const struct rlimit limit = {bytes, bytes};
  ::setrlimit(RLIMIT_DATA, &limit);
}

int RunQueryProcess() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Result<std::string> text = ReadFile("/dev/stdin", kMaxRequest);
  if (!text.ok()) return 2;
  const Result<json::object> object = ParseJsonObject(*text);
  if (!object.ok()) return 2;
  const Result<QueryRequest> request = ParseQueryRequest(*object);
  if (!request.ok()) return 2;
  LeaveNetwork();
  // DuckDB keeps to its memory_limit; this is for what it does not count.
  LimitMemory(2 * request->memory_bytes + 2 * SizeOfModels(*request) + (uint64_t{1} << 30));
  const json::object answer = RunQueryRequest(*request);
  const bool told = WriteAll(STDOUT_FILENO, ToText(answer)).ok();
  ::_exit(told ? 0 : 1);  // DuckDB's threads and the library's destructors are not waited for
}

}  // namespace shoal::sql
