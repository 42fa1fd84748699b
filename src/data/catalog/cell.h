// One value of a record, as predicates see it.
#pragma once

#include <cstdint>
#include <string_view>

#include "data/datasets/schema.h"

namespace shoal::data {

enum class CellKind : uint8_t { kNull, kBool, kInteger, kFloat, kText };

// Plain value; `text` belongs to the record.
struct Cell {
  CellKind kind = CellKind::kNull;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;
  std::string_view text = {};

  static Cell Null() { return {}; }
  static Cell Of(bool value) { return {.kind = CellKind::kBool, .boolean = value}; }
  static Cell Of(int64_t value) { return {.kind = CellKind::kInteger, .integer = value}; }
  static Cell Of(double value) { return {.kind = CellKind::kFloat, .number = value}; }
  static Cell Of(std::string_view value) { return {.kind = CellKind::kText, .text = value}; }
};

// The cell of a text table in a column of that type. Empty: null. A text that is none of the type
// becomes a text, which compares with no number.
Cell ParseCell(std::string_view text, ColumnType type);

}  // namespace shoal::data
