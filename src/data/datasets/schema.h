// The columns of a dataset, inferred from its first records.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "data/formats/record_reader.h"

namespace shoal::data {

// Each type contains those before it, but for lists and objects: a column with 1 and 2.5 is of
// floats, one with 1 and "x" of text.
enum class ColumnType : uint8_t {
  kNull,
  kBool,
  kInteger,
  kFloat,
  kText,
  kBytesList,
  kFloatList,
  kIntegerList,
  kNested,
};
std::string_view NameOf(ColumnType type);

struct SchemaColumn {
  std::string name;
  ColumnType type = ColumnType::kNull;
  uint64_t missing = 0;  // records without a value
};

struct Schema {
  std::vector<SchemaColumn> columns;  // in order of their first record
  uint64_t records = 0;               // that were looked at
};

// Reads up to `records` records. Text has one column, "line". Errors as RecordReader::Next;
// ResourceExhausted above kMaxCsvColumns columns.
Result<Schema> InferSchema(RecordReader* reader, RecordFormat format, uint64_t records);

}  // namespace shoal::data
