#include "data/datasets/schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "base/json.h"
#include "base/utf8.h"
#include "data/formats/csv_cells.h"
#include "data/formats/tf_example.h"

namespace shoal::data {
namespace {

constexpr std::array<std::string_view, 9> kTypeNames = {
    "null",          "bool",           "integer",          "float", "text",
    "list of bytes", "list of floats", "list of integers", "nested"};

ColumnType Widest(ColumnType a, ColumnType b) {
  if (a == ColumnType::kNull) return b;
  if (b == ColumnType::kNull || a == b) return a;
  const bool numbers = std::max(a, b) <= ColumnType::kFloat && std::min(a, b) != ColumnType::kBool;
  if (numbers) return std::max(a, b);
  return std::max(a, b) <= ColumnType::kText ? ColumnType::kText : ColumnType::kNested;
}

// Of a cell of a table.
ColumnType TypeOfCell(std::string_view cell) {
  if (cell.empty()) return ColumnType::kNull;
  const char* const end = cell.data() + cell.size();
  int64_t integer = 0;
  if (const auto parsed = std::from_chars(cell.data(), end, integer);
      parsed.ec == std::errc() && parsed.ptr == end)
    return ColumnType::kInteger;
  double number = 0;
  if (const auto parsed = std::from_chars(cell.data(), end, number);
      parsed.ec == std::errc() && parsed.ptr == end)
    return ColumnType::kFloat;
  return ColumnType::kText;
}

ColumnType TypeOfJson(const json::value& value) {
  if (value.is_null()) return ColumnType::kNull;
  if (value.is_bool()) return ColumnType::kBool;
  if (value.is_int64() || value.is_uint64()) return ColumnType::kInteger;
  if (value.is_double()) return ColumnType::kFloat;
  return value.is_string() ? ColumnType::kText : ColumnType::kNested;
}

class SchemaBuilder {
 public:
  Status Add(const std::string& name, ColumnType type) {
    const auto [found, fresh] = places_.try_emplace(name, schema_.columns.size());
    if (fresh) {
      if (schema_.columns.size() == kMaxCsvColumns)
        return ResourceExhausted("the records have more than " + std::to_string(kMaxCsvColumns) +
                                 " columns");
      schema_.columns.push_back({EscapedUtf8(name), ColumnType::kNull, 0});
      present_.push_back(0);
    }
    SchemaColumn& column = schema_.columns[found->second];
    column.type = Widest(column.type, type);
    if (type != ColumnType::kNull) ++present_[found->second];
    return Status::Ok();
  }
  void EndRecord() { ++schema_.records; }
  uint64_t records() const { return schema_.records; }

  Schema Finish() {
    for (size_t i = 0; i < present_.size(); ++i)
      schema_.columns[i].missing = schema_.records - std::min(present_[i], schema_.records);
    return std::move(schema_);
  }

 private:
  Schema schema_;
  std::vector<uint64_t> present_;
  std::unordered_map<std::string, size_t> places_;
};

Status AddTableRow(const Record& record, char delimiter, const std::vector<std::string>& names,
                   SchemaBuilder* schema) {
  std::string room;
  std::string_view cell;
  const char* at = record.bytes.data();
  const char* const end = at + record.bytes.size();
  for (const std::string& name : names) {
    if (at > end || !NextCell(&at, end, delimiter, &room, &cell)) break;
    TRY(schema->Add(name, TypeOfCell(cell)));
  }
  return Status::Ok();
}

Status AddTfExample(const Record& record, SchemaBuilder* schema) {
  TRY_ASSIGN(const TfExample example, DecodeTfExample(record.bytes));
  constexpr std::array<ColumnType, 3> kTypes = {ColumnType::kBytesList, ColumnType::kFloatList,
                                                ColumnType::kIntegerList};
  for (const auto& [name, feature] : example) TRY(schema->Add(name, kTypes[feature.index()]));
  return Status::Ok();
}

Status AddRecord(const Record& record, RecordFormat format, const RecordReader& reader,
                 SchemaBuilder* schema) {
  switch (format) {
    case RecordFormat::kCsv:
    case RecordFormat::kTsv:
      return AddTableRow(record, format == RecordFormat::kCsv ? ',' : '\t', reader.columns(),
                         schema);
    case RecordFormat::kParquet:
    case RecordFormat::kJsonLines: {
      TRY_ASSIGN(const json::object object, ParseJsonObject(record.bytes));
      for (const auto& field : object) TRY(schema->Add(field.key(), TypeOfJson(field.value())));
      return Status::Ok();
    }
    case RecordFormat::kTfRecord:
      return AddTfExample(record, schema);
    case RecordFormat::kLibsvm:
    case RecordFormat::kLibffm: {
      const size_t end = std::min(record.bytes.find_first_of(" \t"), record.bytes.size());
      TRY(schema->Add("label", TypeOfCell(record.bytes.substr(0, end))));
      return schema->Add("features", ColumnType::kFloatList);
    }
    case RecordFormat::kText:
      break;
  }
  return schema->Add("line", ColumnType::kText);
}

}  // namespace

std::string_view NameOf(ColumnType type) { return kTypeNames[static_cast<size_t>(type)]; }

Result<Schema> InferSchema(RecordReader* reader, RecordFormat format, uint64_t records) {
  SchemaBuilder schema;
  Record record;
  while (schema.records() < records) {
    TRY_ASSIGN(const bool more, reader->Next(&record));
    if (!more) break;
    TRY(AddRecord(record, format, *reader, &schema));
    schema.EndRecord();
  }
  return schema.Finish();
}

}  // namespace shoal::data
