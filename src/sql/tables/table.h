// Tables of a session: names for files and objects, read again by each statement that uses them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "data/datasets/schema.h"
#include "data/formats/record_reader.h"

namespace shoal::sql {

// Records that say which columns a table has, and of which types.
inline constexpr uint64_t kSchemaRecords = 1000;

// Plain value; cheap to copy.
struct Table {
  data::RecordFormat format = data::RecordFormat::kCsv;
  std::vector<std::string> sources;  // absolute paths and URIs
  std::vector<data::SchemaColumn> columns;
  std::string origin;  // as in the statement that made it: "csv.`people.csv`"
  // Of a query's result: columns that are texts here and have this type in SQL, such as DATE.
  std::map<std::string, std::string> special;
  uint64_t partitions = 0;               // workers of a cluster DTF; 0: one for each source
  std::shared_ptr<const TempDir> files;  // where the session keeps the sources; null: elsewhere
};

// The formats that tables are loaded from, by the names that statements use.
const std::vector<std::string>& LoadFormats();
// InvalidArgument suggests the nearest one. "json" is "jsonl".
Result<data::RecordFormat> ParseLoadFormat(const std::string& name);

// Finds the files of a path, a pattern, a directory or a URI, and the columns of their first
// records. Relative paths begin at the working directory. Errors as ObjectStores::Expand,
// Corpus::Open and RecordReader::Next.
Result<Table> OpenTable(data::RecordFormat format, const std::string& path);

// A file "table.csv" of a session as a table.
Result<Table> OpenSessionFile(data::RecordFormat format, std::shared_ptr<const TempDir> files,
                              const std::string& name);

// Absolute, with its "." and ".." resolved; URIs stay as they are.
std::string AbsolutePath(const std::string& path);

// Reads the rows of a table. Not thread-safe.
class TableReader {
 public:
  static Result<TableReader> Open(const Table& table);

  // False at the end. `row` gets a value for each column: of CSV and TSV texts, null for an empty
  // cell; of JSON lines and Parquet the values; null for a missing field. InvalidArgument for a
  // record with a field that is no column of the table.
  Result<bool> Next(std::vector<json::value>* row);
  // The record itself, for a copy in the same format.
  Result<bool> NextRecord(data::Record* record);

 private:
  TableReader(data::Corpus corpus, const Table& table);
  Status ReadCells(char delimiter, std::vector<json::value>* row);
  Status ReadObject(const json::object& object, std::vector<json::value>* row) const;

  data::RecordFormat format_;
  std::vector<std::string> names_;
  std::unique_ptr<data::RecordReader> reader_;
  data::Record record_;
};

}  // namespace shoal::sql
