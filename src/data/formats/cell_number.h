// The number that a cell is.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "data/formats/fields.h"

namespace shoal::data {

struct CellNumber {
  bool whole = false;  // `integer` is its value; else `real`
  int64_t integer = 0;
  double real = std::numeric_limits<double>::quiet_NaN();
};

// None if it is no number. A missing cell is a NaN, a boolean 0 or 1.
std::optional<CellNumber> NumberOf(const TableCell& cell);

// Whether a row with the texts of `header`, which names columns, can only be the header again: one
// of them is no number.
bool IsOnlyHeader(std::span<const std::string> header);

}  // namespace shoal::data
