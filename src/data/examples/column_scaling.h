// Numeric columns of CSV on one scale. While a file is read each column is summed up; the sums of
// all readers together give the linear map that takes the column to mean 0 and standard deviation 1
// (batch standardization), so that a trainer's steps do not depend on a column's unit and origin.
//
// Until that map is known an example holds raw values: features kRawFeature | column, whose value
// is the cell minus ColumnSummary::offset, or NaN for a missing cell. ScaleColumns replaces them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace shoal::data {

struct CsvColumns;
struct ExampleOptions;
struct ExampleSet;
struct FeatureValue;

// CSV hashes features to at most 31 bits, so that raw ones can be told from them.
inline constexpr uint32_t kRawFeature = 1u << 31;

// Greater numbers count as infinite: differences are kept as float.
inline constexpr double kLargestNumber = 1e30;

// The cells of a column. Mean and deviation are exact where the offset is a typical value: sums of
// differences to it do not cancel (Chan, Golub and LeVeque 1983, "Algorithms for Computing the
// Sample Variance", shifted data).
struct ColumnSummary {
  double offset = 0;  // the first number
  double sum = 0;     // of number − offset
  double squares = 0;
  uint64_t numbers = 0;
  uint64_t missing = 0;     // empty, NA or not finite
  uint64_t not_finite = 0;  // of these: infinite or out of range
  uint64_t texts = 0;

  void Add(double value) {
    if (numbers++ == 0) offset = value;
    const double difference = value - offset;
    sum += difference;
    squares += difference * difference;
  }
  // Adds the cells of another reader.
  void Merge(const ColumnSummary& other);
  double mean() const { return numbers == 0 ? 0 : offset + sum / static_cast<double>(numbers); }
  double variance() const;  // of the numbers; at least 0
  bool operator==(const ColumnSummary&) const = default;
};

// Feature "COLUMN=" with value 1.
enum class CsvIndicator : uint8_t {
  kNone = 0,
  kMissing = 1,  // of the missing cells, if they are fewer than the others
  kPresent = 2,  // else of the numbers
};

// The value of a number x is (x − mean) · factor.
struct ColumnScale {
  double mean = 0;
  double factor = 0;  // 0: a constant column, or one without numbers
  CsvIndicator indicator = CsvIndicator::kNone;
  bool operator==(const ColumnScale&) const = default;
};

ColumnScale ScaleOf(const ColumnSummary& column);

// The factor that gives the average example unit length: the inverse root of the mean squared
// length. 1 without examples.
float RowScaleOf(std::span<const ColumnSummary> columns, uint64_t examples);

// A cell that says that there is no value: empty, NA, N/A, NaN, null, None or "?".
bool IsMissingCell(std::string_view cell);

// Parses a decimal number. True for infinite numbers too, and for NaN.
bool ParseWideNumber(std::string_view cell, double* value);

// Appends the features of a cell of `column` to `line`: a number, or NaN for a missing cell.
void AppendScaled(const CsvColumns& columns, size_t column, double value,
                  const ExampleOptions& options, std::vector<FeatureValue>* line);

// Replaces all raw values of a set that was read with `options` (whose columns had no scales) by
// those that the columns of `scaled` give. Throws std::bad_alloc.
void ScaleColumns(const ExampleOptions& options, const CsvColumns& scaled, ExampleSet* set);

}  // namespace shoal::data
