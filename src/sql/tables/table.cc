#include "sql/tables/table.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/utf8.h"
#include "data/formats/csv_cells.h"
#include "data/formats/tf_example.h"
#include "data/objects/object_stores.h"
#include "data/objects/object_uri.h"
#include "data/parquet/parquet_rows.h"
#include "job/text/errors.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;
using data::RecordFormat;

// Of a directory its files, as of a name that ends with '/'.
std::string SourceOf(const std::string& path) {
  const std::string absolute = AbsolutePath(path);
  std::error_code ignored;  // what cannot be looked at is reported when it is opened
  const bool folder = !data::IsRemoteUri(absolute) && fs::is_directory(absolute, ignored);
  return folder && !absolute.ends_with('/') ? absolute + "/" : absolute;
}

Result<std::unique_ptr<data::RecordReader>> OpenReader(const Table& table) {
  TRY_ASSIGN(data::Corpus corpus, data::Corpus::Open(table.sources, data::ObjectContext(),
                                                     data::ContentOf(table.format)));
  return std::make_unique<data::RecordReader>(std::move(corpus), table.format);
}

// The names of a Parquet file's columns.
Result<std::vector<std::string>> ParquetNames(const Table& table) {
  TRY_ASSIGN(const data::Corpus corpus,
             data::Corpus::Open({table.sources.front()}, data::ObjectContext(),
                                data::ContentOf(table.format)));
  TRY_ASSIGN(const auto rows, data::ParquetRows::Open(corpus.files().front(),
                                                      [](std::string_view) { return false; }));
  std::vector<std::string> names;
  for (const data::ParquetColumn& column : rows->footer().columns) names.push_back(column.name);
  return names;
}

// Moves the named columns to the front, in this order, and adds those that no record has.
void ArrangeColumns(const std::vector<std::string>& names,
                    std::vector<data::SchemaColumn>* columns) {
  std::vector<data::SchemaColumn> arranged;
  for (const std::string& name : names) {
    const auto found = std::find_if(columns->begin(), columns->end(), [&](const auto& column) {
      return column.name == EscapedUtf8(name);
    });
    if (found == columns->end()) {
      arranged.push_back({EscapedUtf8(name), data::ColumnType::kNull, 0});
    } else {
      arranged.push_back(std::move(*found));
      columns->erase(found);
    }
  }
  for (data::SchemaColumn& rest : *columns) arranged.push_back(std::move(rest));
  *columns = std::move(arranged);
}

Status ReadSchema(Table* table) {
  TRY_ASSIGN(const auto reader, OpenReader(*table));
  TRY_ASSIGN(data::Schema schema, data::InferSchema(reader.get(), table->format, kSchemaRecords));
  table->columns = std::move(schema.columns);
  std::vector<std::string> names = reader->columns();
  if (table->format == RecordFormat::kParquet) {
    TRY_ASSIGN(names, ParquetNames(*table));
  }
  ArrangeColumns(names, &table->columns);
  return Status::Ok();
}

}  // namespace

const std::vector<std::string>& LoadFormats() {
  static const std::vector<std::string> formats = {
      "csv", "tsv", "json", "jsonl", "parquet", "libsvm", "libffm", "tfrecord", "text"};
  return formats;
}

Result<RecordFormat> ParseLoadFormat(const std::string& name) {
  std::string lower = name;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  if (std::find(LoadFormats().begin(), LoadFormats().end(), lower) == LoadFormats().end()) {
    std::string known;
    for (const std::string& one : LoadFormats()) known += (known.empty() ? "" : ", ") + one;
    return InvalidArgument("there is no format " + name + ", expected one of " + known +
                           job::DidYouMean(lower, LoadFormats()));
  }
  return data::ParseRecordFormat(lower == "json" ? "jsonl" : lower);
}

std::string AbsolutePath(const std::string& path) {
  if (data::IsRemoteUri(path)) return path;
  constexpr std::string_view kFile = "file://";
  std::error_code error;
  const fs::path absolute =
      fs::absolute(path.starts_with(kFile) ? path.substr(kFile.size()) : path, error);
  return error ? path : absolute.lexically_normal().string();
}

Result<Table> OpenTable(RecordFormat format, const std::string& path) {
  Table table;
  table.format = format;
  data::ObjectStores stores;
  TRY_ASSIGN(table.sources, stores.Expand(SourceOf(path)));
  TRY(ReadSchema(&table));
  return table;
}

Result<Table> OpenSessionFile(RecordFormat format, std::shared_ptr<const TempDir> files,
                              const std::string& name) {
  Table table;
  table.format = format;
  table.sources = {(files->path() / name).string()};
  table.files = std::move(files);
  TRY(ReadSchema(&table));
  return table;
}

TableReader::TableReader(data::Corpus corpus, const Table& table)
    : format_(table.format),
      reader_(std::make_unique<data::RecordReader>(std::move(corpus), table.format)) {
  for (const data::SchemaColumn& column : table.columns) names_.push_back(column.name);
}

Result<TableReader> TableReader::Open(const Table& table) {
  TRY_ASSIGN(data::Corpus corpus, data::Corpus::Open(table.sources, data::ObjectContext(),
                                                     data::ContentOf(table.format)));
  return TableReader(std::move(corpus), table);
}

Result<bool> TableReader::NextRecord(data::Record* record) { return reader_->Next(record); }

Status TableReader::ReadCells(char delimiter, std::vector<json::value>* row) {
  std::string room;
  std::string_view cell;
  const char* at = record_.bytes.data();
  const char* const end = at + record_.bytes.size();
  for (size_t i = 0; i < names_.size(); ++i) {
    if (at > end || !data::NextCell(&at, end, delimiter, &room, &cell)) break;
    if (!cell.empty()) (*row)[i] = json::string(cell);
  }
  return Status::Ok();
}

Status TableReader::ReadObject(const json::object& object, std::vector<json::value>* row) const {
  size_t found = 0;
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto field = object.find(names_[i]);
    if (field == object.end()) continue;
    (*row)[i] = field->value();
    ++found;
  }
  if (found == object.size()) return Status::Ok();
  for (const auto& field : object) {
    const std::string name(field.key());
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) continue;
    return InvalidArgument("record " + std::to_string(record_.number) + " has the field " +
                           EscapedUtf8(name) + ", which the first " +
                           std::to_string(kSchemaRecords) + " records of the table lack");
  }
  return Status::Ok();
}

Result<bool> TableReader::Next(std::vector<json::value>* row) {
  TRY_ASSIGN(const bool more, reader_->Next(&record_));
  if (!more) return false;
  row->assign(names_.size(), json::value());
  switch (format_) {
    case RecordFormat::kCsv:
    case RecordFormat::kTsv:
      TRY(ReadCells(format_ == RecordFormat::kCsv ? ',' : '\t', row));
      return true;
    case RecordFormat::kJsonLines:
    case RecordFormat::kParquet: {
      TRY_ASSIGN(const json::object object, ParseJsonObject(record_.bytes));
      TRY(ReadObject(object, row));
      return true;
    }
    case RecordFormat::kTfRecord: {
      TRY_ASSIGN(const data::TfExample example, data::DecodeTfExample(record_.bytes));
      TRY(ReadObject(data::ToJson(example), row));
      return true;
    }
    case RecordFormat::kLibsvm:
    case RecordFormat::kLibffm: {
      const size_t end = std::min(record_.bytes.find_first_of(" \t"), record_.bytes.size());
      if (!row->empty()) (*row)[0] = json::string(record_.bytes.substr(0, end));
      if (row->size() > 1)
        (*row)[1] = json::string(record_.bytes.substr(std::min(end + 1, record_.bytes.size())));
      return true;
    }
    case RecordFormat::kText:
      if (!row->empty()) (*row)[0] = json::string(record_.bytes);
      return true;
  }
  return true;
}

}  // namespace shoal::sql
