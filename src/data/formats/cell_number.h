// The number that a cell is.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "data/formats/fields.h"

namespace shoal::data {

struct CellNumber {
  bool whole = false;  // `integer` is its value; else `real`
  int64_t integer = 0;
  double real = std::numeric_limits<double>::quiet_NaN();
};

// None if it is no number. A missing cell is a NaN, a boolean 0 or 1.
std::optional<CellNumber> NumberOf(const TableCell& cell);

}  // namespace shoal::data
