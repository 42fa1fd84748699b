#include "data/examples/column_scaling.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "data/examples/csv.h"
#include "data/examples/example_parser.h"
#include "data/examples/examples.h"

namespace shoal::data {
namespace {

// Deviations below this part of the values' size are rounding errors of a constant column.
constexpr double kSmallestDeviation = 1e-9;

FeatureValue Indicator(const CsvColumns::Column& column, const ExampleOptions& options) {
  const auto field = static_cast<uint16_t>(FieldOf(options, column.field));
  return {HashFeature(HashBytes("=", column.feature), options.hash_bits), 1, field};
}

// Writes examples one after another, over those that have been read or into another set.
class Writer {
 public:
  explicit Writer(ExampleSet* set) : set_(*set) {}

  void Append(std::span<const FeatureValue> line) {
    for (const FeatureValue& one : line) {
      Put(&set_.features, one.feature);
      Put(&set_.values, one.value);
      if (keeps_fields_) Put(&set_.fields, one.field);
      ++size_;
    }
    if (!line.empty())
      set_.feature_end = std::max<uint64_t>(set_.feature_end, line.back().feature + 1ull);
  }
  void set_keeps_fields(bool keeps) { keeps_fields_ = keeps; }
  uint64_t size() const { return size_; }
  void Finish() {
    set_.features.SetSize(size_);
    set_.values.SetSize(size_);
    if (keeps_fields_) set_.fields.SetSize(size_);
  }

 private:
  template <typename T>
  void Put(GrowableArray<T>* array, T value) const {
    if (size_ < array->size()) {
      (*array)[size_] = value;
    } else {
      array->Push(value);
    }
  }

  ExampleSet& set_;
  bool keeps_fields_ = false;
  uint64_t size_ = 0;
};

}  // namespace

void ColumnSummary::Merge(const ColumnSummary& other) {
  if (other.numbers > 0) {
    if (numbers == 0) offset = other.offset;
    const double shift = other.offset - offset;
    const auto count = static_cast<double>(other.numbers);
    squares += other.squares + 2 * shift * other.sum + shift * shift * count;
    sum += other.sum + shift * count;
  }
  numbers += other.numbers;
  missing += other.missing;
  not_finite += other.not_finite;
  texts += other.texts;
}

double ColumnSummary::variance() const {
  if (numbers == 0) return 0;
  const auto count = static_cast<double>(numbers);
  return std::max(0.0, (squares - sum * sum / count) / count);
}

ColumnScale ScaleOf(const ColumnSummary& column) {
  ColumnScale scale;
  const double deviation = std::sqrt(column.variance());
  const double rounding = kSmallestDeviation * std::abs(column.mean() - column.offset);
  scale.mean = column.mean();
  if (deviation > rounding && std::isfinite(1 / deviation)) scale.factor = 1 / deviation;
  if (column.missing == 0) return scale;
  const uint64_t others = column.numbers + column.texts;
  if (column.missing <= others) {
    scale.indicator = CsvIndicator::kMissing;
  } else if (column.numbers > 0) {
    scale.indicator = CsvIndicator::kPresent;
  }
  return scale;
}

float RowScaleOf(std::span<const ColumnSummary> columns, uint64_t examples) {
  double squares = 0;  // of all values
  for (const ColumnSummary& column : columns) {
    const ColumnScale scale = ScaleOf(column);
    if (scale.factor > 0) squares += static_cast<double>(column.numbers);
    squares += static_cast<double>(column.texts);
    if (scale.indicator == CsvIndicator::kMissing) squares += static_cast<double>(column.missing);
    if (scale.indicator == CsvIndicator::kPresent) squares += static_cast<double>(column.numbers);
  }
  const double mean = examples == 0 ? 0 : squares / static_cast<double>(examples);
  return mean > 0 ? static_cast<float>(1 / std::sqrt(mean)) : 1.0f;
}

bool IsMissingCell(std::string_view cell) {
  if (cell.empty()) return true;
  const char first = cell.front();
  if ((first >= '0' && first <= '9') || first == '-' || first == '.') return false;
  static constexpr std::array<std::string_view, 10> kNames{"NA",  "N/A",  "na",   "n/a",  "NaN",
                                                           "nan", "null", "NULL", "None", "?"};
  return cell.size() <= 4 && std::find(kNames.begin(), kNames.end(), cell) != kNames.end();
}

bool ParseWideNumber(std::string_view cell, double* value) {
  if (cell.starts_with('+')) {
    cell.remove_prefix(1);
    if (cell.starts_with('-') || cell.starts_with('+')) return false;
  }
  if (cell.empty()) return false;
  const char* const end = cell.data() + cell.size();
  const auto [stop, error] = std::from_chars(cell.data(), end, *value);
  if (stop != end) return false;
  if (error == std::errc::result_out_of_range) {
    const bool small = cell.find("e-") != cell.npos || cell.find("E-") != cell.npos;
    *value = small ? 0 : std::numeric_limits<double>::infinity();
    return true;
  }
  if (error != std::errc()) return false;
  if (std::abs(*value) > kLargestNumber) *value = std::numeric_limits<double>::infinity();
  return true;
}

void AppendScaled(const CsvColumns& columns, size_t column, double value,
                  const ExampleOptions& options, std::vector<FeatureValue>* line) {
  const CsvColumns::Column& of = columns.columns[column];
  if (std::isnan(value)) {
    if (of.scale.indicator == CsvIndicator::kMissing) line->push_back(Indicator(of, options));
    return;
  }
  if (of.scale.indicator == CsvIndicator::kPresent) line->push_back(Indicator(of, options));
  const auto scaled = static_cast<float>((value - of.scale.mean) * of.scale.factor);
  if (scaled == 0) return;
  const auto field = static_cast<uint16_t>(FieldOf(options, of.field));
  line->push_back({HashFeature(of.feature, options.hash_bits), scaled, field});
}

void ScaleColumns(const ExampleOptions& options, const CsvColumns& scaled, ExampleSet* set) {
  if (set->values.empty()) return;  // only texts
  const bool grows = std::any_of(
      scaled.columns.begin(), scaled.columns.end(),
      [](const auto& column) { return column.scale.indicator == CsvIndicator::kPresent; });
  ExampleSet copy;
  ExampleSet* const to = grows ? &copy : set;
  Writer writer(to);
  writer.set_keeps_fields(options.keep_fields);
  std::vector<FeatureValue> line;
  uint64_t begin = 0;
  for (size_t i = 0; i < set->size(); ++i) {
    line.clear();
    const uint64_t end = set->starts[i + 1];
    for (uint64_t k = begin; k < end; ++k) {
      const uint32_t feature = set->features[k];
      const float value = set->values[k];
      if ((feature & kRawFeature) == 0) {
        line.push_back({feature, value, options.keep_fields ? set->fields[k] : uint16_t{0}});
        continue;
      }
      const uint32_t column = feature & ~kRawFeature;
      AppendScaled(scaled, column, static_cast<double>(value) + set->columns[column].offset,
                   options, &line);
    }
    begin = end;
    SortAndMerge(&line);
    writer.Append(line);
    set->starts[i + 1] = writer.size();
  }
  writer.Finish();
  if (!grows) return;
  set->features = std::move(copy.features);
  set->values = std::move(copy.values);
  set->fields = std::move(copy.fields);
  set->feature_end = copy.feature_end;
}

}  // namespace shoal::data
