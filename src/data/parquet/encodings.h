// The encodings of values and levels in Parquet's pages. Private to this folder and its tests.
// Source: parquet-format's Encodings.md.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/parquet/parquet_file.h"

namespace shoal::data {

// The values of a page or dictionary, without nulls; in the one of the three that the column's type
// takes: booleans and integers, other numbers, and bytes.
struct ParquetValues {
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::vector<std::string_view> texts;  // into the page, or into `kept`
  std::deque<std::string> kept;
};

// Of encodings 0 (plain), 3 (RLE, of booleans), 5, 6, 7 (delta) and 9 (split bytes): reads `count`
// values of `column` from `bytes`. DataLoss if there are fewer; InvalidArgument for other
// encodings.
Status DecodeValues(const ParquetColumn& column, int encoding, std::string_view bytes, size_t count,
                    ParquetValues* values);

// Runs and packed groups of numbers of `bits` (≤ 32) bits each; reads `count` of them.
Status DecodeRuns(std::string_view bytes, int bits, size_t count, std::vector<uint32_t>* values);

}  // namespace shoal::data
