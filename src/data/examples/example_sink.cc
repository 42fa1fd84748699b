// Makes examples of the rows of a table.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <vector>

#include "data/examples/classes.h"
#include "data/examples/csv.h"
#include "data/examples/decimal.h"
#include "data/examples/example_parser.h"
#include "data/examples/table.h"

namespace shoal::data {
namespace {

constexpr size_t kListed = 8;  // classes
using Kind = TableCell::Kind;

bool IsNumberKind(Kind kind) {
  return kind == Kind::kInteger || kind == Kind::kFloat || kind == Kind::kReal;
}

double NumberOf(const TableCell& cell) {
  return cell.kind == Kind::kInteger ? static_cast<double>(cell.integer) : cell.real;
}

class ExampleSink final : public RowSink {
 public:
  ExampleSink(const ExampleOptions& options, ExampleSet* set)
      : options_(options), columns_(*options.csv), set_(*set) {
    if (options.raw_columns) set_.columns.resize(columns_.columns.size());
  }

  RowFault Take(const TableRow& row) override {
    float label = 0;
    double weight = 1;
    if (RowFault fault = TakeWeight(row, &weight); fault.any()) return fault;
    if (columns_.label != CsvColumns::kNone) {
      const TableCell& cell = row.cells[columns_.label];
      const std::string_view text = TextOf(cell, &room_);
      std::string expected =
          cell.kind == Kind::kList ? "a label that is no list" : ParseLabel(text, &label);
      if (!expected.empty()) return {columns_.label, std::string(text), std::move(expected)};
    }
    line_.clear();
    for (size_t column = 0; column < row.cells.size(); ++column) {
      if (columns_.IsFeature(column)) AddFeature(column, row.cells[column]);
    }
    for (const ListEntry& entry : row.entries) {
      if (columns_.IsFeature(entry.column)) AddEntry(entry);
    }
    if (columns_.weight != CsvColumns::kNone) set_.weights.Push(static_cast<float>(weight));
    if (columns_.key != CsvColumns::kNone)
      set_.keys.emplace_back(TextOf(row.cells[columns_.key], &room_));
    Append(label);
    return {};
  }

 private:
  RowFault TakeWeight(const TableRow& row, double* weight) {
    if (columns_.weight == CsvColumns::kNone) return {};
    const std::string_view text = TextOf(row.cells[columns_.weight], &room_);
    if (ParseWideNumber(text, weight) && std::isfinite(*weight) && *weight >= 0) return {};
    return {columns_.weight, std::string(text), "a weight: a finite number of at least 0"};
  }

  void AddFeature(size_t column, const TableCell& cell) {
    if (cell.kind == Kind::kList) return;
    const CsvColumns::Column& known = columns_.columns[column];
    const bool scalable = !known.categorical && (options_.raw_columns || columns_.scaled);
    if (IsNumberKind(cell.kind) && !known.categorical) {
      const double value = NumberOf(cell);
      if (scalable) return AddScalable(column, value, std::isnan(value));
      return Add(known, static_cast<float>(value));
    }
    const std::string_view text = TextOf(cell, &room_);
    if (scalable && (cell.kind != Kind::kText || text.empty()))
      return AddScalableText(column, text);
    if (text.empty()) return;
    if (options_.raw_columns) ++set_.columns[column].texts;
    float value = 1;
    if (cell.kind == Kind::kText || known.categorical || !ParseNumber(text, &value))
      return AddText(known, text);
    Add(known, value);
  }

  void AddEntry(const ListEntry& entry) {
    const std::string_view text = TextOf(entry.cell, &room_);
    if (text.empty()) return;
    if (options_.raw_columns) ++set_.columns[entry.column].texts;
    AddText(columns_.columns[entry.column], text);
  }

  static bool ParseNumber(std::string_view cell, float* value) {
    const char* const end = cell.data() + cell.size();
    return !cell.empty() && ParseReal(cell.data(), end, value) == end;
  }

  // Sets the label, or returns what was expected in place of the cell.
  std::string ParseLabel(std::string_view cell, float* label) {
    if (options_.raw_labels) return ParseRawLabel(cell, label);
    if (options_.real_labels) return ParseRealLabel(cell, label);
    const std::vector<std::string>& classes = columns_.schema.classes;
    if (classes.empty()) {
      if (IsUnknown(cell, label)) return "";
      if (ParseNumber(cell, label) && NormalizeLabel(options_, label)) return "";
      return ExpectedLabel(options_);
    }
    *label = LabelOf(ClassName(cell), classes);
    if (options_.missing_labels || !std::isnan(*label)) return "";
    if (classes.size() == 2) return fmt::format("a label: {} or {}", classes[0], classes[1]);
    return fmt::format("a label that the training data has: one of {}{}",
                       fmt::join(classes.begin(), classes.begin() + Shown(classes), ", "),
                       std::ssize(classes) > Shown(classes) ? ", …" : "");
  }

  bool IsUnknown(std::string_view cell, float* label) const {
    if (!options_.missing_labels || !IsMissingCell(cell)) return false;
    *label = std::numeric_limits<float>::quiet_NaN();
    return true;
  }

  static std::ptrdiff_t Shown(const std::vector<std::string>& classes) {
    return std::min<std::ptrdiff_t>(5, std::ssize(classes));
  }

  // A number less the first of the set, which is exact where labels are large and alike.
  std::string ParseRealLabel(std::string_view cell, float* label) {
    double value = 0;
    if (IsUnknown(cell, label)) return "";
    if (!ParseWideNumber(cell, &value) || !std::isfinite(value) || value < options_.least_label)
      return ExpectedLabel(options_);
    if (!set_.has_label_offset) set_.label_offset = value;
    set_.has_label_offset = true;
    *label = static_cast<float>(value - set_.label_offset);
    return "";
  }

  // The index of the cell's class among those of the set.
  std::string ParseRawLabel(std::string_view cell, float* label) {
    if (cell.empty()) return "a label";
    if (cell == "nan" || cell == "NaN") return "a label; a class that is not known is none";
    if (cell.size() > kMaxClassName)
      return fmt::format("a label of at most {} bytes", kMaxClassName);
    if (cell != last_label_) {
      const std::string name = ClassName(cell);
      const auto known = FindClass(name);
      if (known == set_.classes.size()) {
        if (known == options_.max_classes) return TooManyClasses();
        set_.classes.push_back(name);
        if (known >= kListed) places_.try_emplace(name, known);
      }
      last_label_ = cell;
      last_class_ = static_cast<float>(known);
    }
    *label = last_class_;
    return "";
  }

  // The index of a class; the number of classes if it is none. The first are compared one by one.
  size_t FindClass(const std::string& name) {
    const size_t listed = std::min(kListed, set_.classes.size());
    for (size_t i = 0; i < listed; ++i) {
      if (set_.classes[i] == name) return i;
    }
    for (size_t i = kListed + places_.size(); i < set_.classes.size(); ++i)
      places_.try_emplace(set_.classes[i], i);
    const auto found = places_.find(name);
    return found == places_.end() ? set_.classes.size() : found->second;
  }

  std::string TooManyClasses() const {
    if (options_.max_classes > kMaxBinaryClasses) {
      return fmt::format(
          "a label of one of at most {} classes, which the lines before have; for a label that is "
          "a number use the loss squared",
          options_.max_classes);
    }
    return fmt::format(
        "a label of one of two classes; the lines before have {}; for more classes use "
        "the loss softmax",
        fmt::join(set_.classes, ", "));
  }

  // A cell of a column whose numbers are, or will be, scaled.
  void AddScalableText(size_t column, std::string_view text) {
    double value = std::numeric_limits<double>::quiet_NaN();
    const bool missing = IsMissingCell(text);
    if (!missing && !ParseWideNumber(text, &value)) {
      if (options_.raw_columns) ++set_.columns[column].texts;
      return AddText(columns_.columns[column], text);
    }
    AddScalable(column, value, missing);
  }

  void AddScalable(size_t column, double value, bool missing) {
    const bool finite = std::abs(value) <= kLargestNumber;  // false for NaN
    if (!finite) value = std::numeric_limits<double>::quiet_NaN();
    if (columns_.scaled) return AppendScaled(columns_, column, value, options_, &line_);
    ColumnSummary& summary = set_.columns[column];
    if (finite) {
      summary.Add(value);
    } else {
      ++summary.missing;
      summary.not_finite += !missing;
    }
    const auto field = static_cast<uint16_t>(FieldOf(options_, columns_.columns[column].field));
    line_.push_back({kRawFeature | static_cast<uint32_t>(column),
                     static_cast<float>(value - summary.offset), field});
  }

  void AddText(const CsvColumns::Column& column, std::string_view cell) {
    const uint64_t feature = HashBytes(cell, HashBytes("=", column.feature));
    const auto field = static_cast<uint16_t>(FieldOf(options_, column.field));
    line_.push_back({HashFeature(feature, options_.hash_bits), 1, field});
  }

  void Add(const CsvColumns::Column& column, float value) {
    if (value == 0 || !std::isfinite(value)) return;
    const auto field = static_cast<uint16_t>(FieldOf(options_, column.field));
    line_.push_back({HashFeature(column.feature, options_.hash_bits), value, field});
  }

  void Append(float label) {
    SortAndMerge(&line_);
    const size_t before = set_.features.size();
    const bool ones =
        std::all_of(line_.begin(), line_.end(), [](const auto& one) { return one.value == 1; });
    if (set_.values.empty() && !ones) {
      set_.values.Reserve(before + 1);
      std::fill(set_.values.data(), set_.values.data() + before, 1.0f);
      set_.values.SetSize(before);
    }
    const bool values = !ones || !set_.values.empty();
    for (const FeatureValue& one : line_) {
      set_.features.Push(one.feature);
      if (values) set_.values.Push(one.value);
      if (!options_.keep_fields) continue;
      set_.fields.Push(one.field);
      set_.field_end = std::max<uint32_t>(set_.field_end, one.field + 1u);
    }
    set_.labels.Push(label);
    set_.starts.Push(set_.features.size());
    if (!line_.empty() && (line_.back().feature & kRawFeature) == 0)
      set_.feature_end = std::max<uint64_t>(set_.feature_end, line_.back().feature + 1ull);
  }

  const ExampleOptions& options_;
  const CsvColumns& columns_;
  ExampleSet& set_;
  std::vector<FeatureValue> line_;
  std::string room_;
  std::unordered_map<std::string, size_t> places_;  // of set_.classes from kListed on
  std::string last_label_;                          // a cell; last_class_ is its index
  float last_class_ = 0;
};

}  // namespace

std::unique_ptr<RowSink> MakeExampleSink(const ExampleOptions& options, ExampleSet* set) {
  return std::make_unique<ExampleSink>(options, set);
}

}  // namespace shoal::data
