// What the statements of a session share: variables, tables, and the program around it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "sql/query/model_functions.h"
#include "sql/session/grid.h"
#include "sql/session/host.h"
#include "sql/session/variables.h"
#include "sql/tables/table.h"

namespace shoal::sql {

inline constexpr size_t kMaxTables = 10'000;

// What `connect` names: a directory of tables in one format, with parameters for `load`.
struct Connection {
  std::string format;
  std::string url;
  std::vector<Option> options;
};

// Not thread-safe.
class SessionState {
 public:
  explicit SessionState(Host* session_host) : host(session_host) {}

  // InvalidArgument with the place suggests the nearest table.
  Result<const Table*> FindTable(const ScriptText& script, const Word& name) const;
  // Replaces a table of this name.
  Status PutTable(const ScriptText& script, const Word& name, Table table);
  // A new directory for the files of one table, which ends with the last copy of the table.
  static Result<std::shared_ptr<const TempDir>> MakeDirectory();

  Host* const host;
  Variables variables;
  std::map<std::string, Table> tables;
  std::map<std::string, Connection> connections;
  std::map<std::string, ModelFunction> functions;  // by name in small letters
};

// What a statement shows when it is the last one: a table, or rows.
struct StatementResult {
  std::string table;           // the name of a table that it made; empty: none
  std::optional<Grid> rows;    // shown in place of a table
  bool shown_at_once = false;  // of a command, wherever it stands
};

}  // namespace shoal::sql
