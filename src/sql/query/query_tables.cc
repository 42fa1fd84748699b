#include "sql/query/query_tables.h"

#include <fcntl.h>

#include <algorithm>
#include <cctype>

#include "data/objects/object_uri.h"
#include "sql/session/state.h"
#include "sql/tables/save_table.h"

namespace shoal::sql {
namespace {

using data::RecordFormat;

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool IsRead(const Table& table) {
  const bool remote = std::any_of(table.sources.begin(), table.sources.end(), data::IsRemoteUri);
  const RecordFormat format = table.format;
  return !remote && (format == RecordFormat::kCsv || format == RecordFormat::kTsv ||
                     format == RecordFormat::kJsonLines || format == RecordFormat::kParquet);
}

// The table as a file of JSON lines.
Result<Table> Copied(const Table& table, const std::function<bool()>& stopped) {
  TRY_ASSIGN(auto directory, SessionState::MakeDirectory());
  const std::string name = "copy.jsonl";
  const SaveOptions how{SaveMode::kErrorIfExists, RecordFormat::kJsonLines, directory->path(),
                        stopped};
  TRY(SaveTable(table, (directory->path() / name).string(), how).status());
  TRY_ASSIGN(Table copy, OpenSessionFile(RecordFormat::kJsonLines, std::move(directory), name));
  return copy;
}

std::string FilesLiteral(const Table& table) {
  std::string list = "[";
  for (const std::string& source : table.sources)
    list += (list.size() > 1 ? "," : "") + SqlLiteral(source);
  return list + "]";
}

// "*", with dates and the like of an earlier query in their types.
std::string ColumnsOf(const Table& table) {
  std::string replaced;
  for (const auto& [column, type] : table.special) {
    const std::string name = SqlName(column);
    replaced += (replaced.empty() ? "" : ", ") + ("CAST(" + name + " AS " + type + ") AS " + name);
  }
  return replaced.empty() ? "*" : "* REPLACE (" + replaced + ")";
}

std::string ReaderOf(const Table& table) {
  const std::string files = FilesLiteral(table);
  switch (table.format) {
    case RecordFormat::kTsv:
      return "read_csv(" + files + ", header = true, delim = '\t', quote = '', escape = '')";
    case RecordFormat::kJsonLines:
      return "read_json(" + files + ", format = 'newline_delimited')";
    case RecordFormat::kParquet:
      return "read_parquet(" + files + ")";
    default:
      return "read_csv(" + files + ", header = true, delim = ',', quote = '\"', escape = '\"')";
  }
}

}  // namespace

Status AddTables(const std::map<std::string, Table>& tables, const std::function<bool()>& stopped,
                 QueryRequest* request, std::vector<std::shared_ptr<const TempDir>>* copies) {
  const std::string query = Lower(request->query);
  for (const auto& [name, table] : tables) {
    if (query.find(Lower(name)) == std::string::npos) continue;
    Table read = table;
    if (!IsRead(table)) {
      Result<Table> copy = Copied(table, stopped);
      if (!copy.ok()) return copy.status().With(name);
      read = std::move(*copy);
      copies->push_back(read.files);
    }
    request->files.insert(request->files.end(), read.sources.begin(), read.sources.end());
    request->views.push_back("CREATE VIEW " + SqlName(name) + " AS SELECT " + ColumnsOf(table) +
                             " FROM " + ReaderOf(read));
  }
  return Status::Ok();
}

void AddFunctions(const std::map<std::string, ModelFunction>& functions, QueryRequest* request) {
  const std::string query = Lower(request->query);
  for (const auto& [name, function] : functions) {
    if (query.find(name) != std::string::npos) request->functions.push_back(function);
  }
}

}  // namespace shoal::sql
