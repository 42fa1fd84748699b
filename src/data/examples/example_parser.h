// The interface of line parsers; private to this room. line_source.cc finds the lines and adds file
// and line to errors.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/examples/examples.h"
#include "data/examples/table.h"

namespace shoal::data {

// An error in a line, and its position.
struct ParseError {
  const char* at = nullptr;  // null: no error
  std::string expected = {};
  std::string got = {};  // as it stands in the message, with quotes; empty: the word at `at`
};

// Parses lines and appends examples to a set. Not thread-safe.
class ExampleParser {
 public:
  virtual ~ExampleParser() = default;
  // Parses the line [text, newline). *newline is '\n', and eight bytes after it are readable. Lines
  // without an example add nothing. Throws std::bad_alloc.
  virtual ParseError Parse(const char* text, const char* newline) = 0;
  // Called with the first line of every file. True if it is a header, which has been checked.
  virtual bool IsHeader(const char* /*text*/, const char* /*newline*/, ParseError* /*fault*/) {
    return false;
  }
};

// A line of CSV without what does not belong to its text: a byte order mark and carriage returns.
inline std::string_view BareLine(std::string_view line) {
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// `options` and `set` must outlive the parser.
std::unique_ptr<ExampleParser> MakeLibsvmParser(const ExampleOptions& options, ExampleSet* set);
// Of lines that are rows of a table; both must outlive the parser.
std::unique_ptr<ExampleParser> MakeCsvParser(const CsvColumns& columns, RowSink* sink);
std::unique_ptr<ExampleParser> MakeJsonParser(const CsvColumns& columns, RowSink* sink);

// Maps the label −1 to 0 for binary labels; false for an invalid label.
inline bool NormalizeLabel(const ExampleOptions& options, float* label) {
  if (options.real_labels) return static_cast<double>(*label) >= options.least_label;
  if (!options.binary_labels) return true;
  if (*label != 0 && *label != 1 && *label != -1) return false;
  *label = *label == 1 ? 1.0f : 0.0f;
  return true;
}

// A feature of the current line.
struct FeatureValue {
  uint32_t feature = 0;
  float value = 1;
  uint16_t field = 0;
};

// Sorts by feature and adds up values of equal features, under the field of the first.
inline void SortAndMerge(std::vector<FeatureValue>* line) {
  std::stable_sort(line->begin(), line->end(),
                   [](const auto& a, const auto& b) { return a.feature < b.feature; });
  size_t size = 0;
  for (const FeatureValue& one : *line) {
    if (size > 0 && (*line)[size - 1].feature == one.feature) {
      (*line)[size - 1].value += one.value;
    } else {
      (*line)[size++] = one;
    }
  }
  line->resize(size);
}

// The field with this number; kMaxFields if it is too large.
inline uint32_t FieldOf(const ExampleOptions& options, uint64_t number) {
  if (options.fields > 0) return static_cast<uint32_t>(number % options.fields);
  return static_cast<uint32_t>(std::min<uint64_t>(number, kMaxFields));
}

inline const char* ExpectedLabel(const ExampleOptions& options) {
  if (options.real_labels && options.least_label == 0)
    return "a count as the label: a finite number of at least 0";
  if (options.real_labels) return "a label that is a finite number";
  return options.binary_labels ? "a label: -1, 0 or 1" : "a label: a finite number";
}

}  // namespace shoal::data
