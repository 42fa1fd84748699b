// What reads one line of a file of examples; private to the room. examples.cc finds the lines and
// says in which file and line a fault is.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "data/examples/examples.h"

namespace shoal::data {

inline bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// What is wrong with a line, and where.
struct ParseError {
  const char* at = nullptr;  // null: nothing
  std::string expected = {};
};

// Appends one line after another to a set. Not thread-safe.
class ExampleParser {
 public:
  virtual ~ExampleParser() = default;
  // The line [text, newline); *newline is '\n', and eight bytes may be read behind it. Lines
  // without an example add nothing. Throws std::bad_alloc.
  virtual ParseError Parse(const char* text, const char* newline) = 0;
  // The first line of every file. True: it is no example, and has been dealt with.
  virtual bool IsHeader(const char* /*text*/, const char* /*newline*/, ParseError* /*fault*/) {
    return false;
  }
};

// Both outlive the parser.
std::unique_ptr<ExampleParser> MakeLibsvmParser(const ExampleOptions& options, ExampleSet* set);
std::unique_ptr<ExampleParser> MakeCsvParser(const ExampleOptions& options, ExampleSet* set);

// −1 becomes 0 where labels are classes; false for a label that is none.
inline bool NormalizeLabel(const ExampleOptions& options, float* label) {
  if (!options.binary_labels) return true;
  if (*label != 0 && *label != 1 && *label != -1) return false;
  *label = *label == 1 ? 1.0f : 0.0f;
  return true;
}

// A feature of the line that is being read.
struct FeatureValue {
  uint32_t feature = 0;
  float value = 1;
  uint16_t field = 0;
};

// Sorted by feature; values of the same feature added up, under the field of the first.
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

// The field that goes by this number; kMaxFields for one that is too high.
inline uint32_t FieldOf(const ExampleOptions& options, uint64_t number) {
  if (options.fields > 0) return static_cast<uint32_t>(number % options.fields);
  return static_cast<uint32_t>(std::min<uint64_t>(number, kMaxFields));
}

inline const char* ExpectedLabel(const ExampleOptions& options) {
  return options.binary_labels ? "a label: -1, 0 or 1" : "a label: a finite number";
}

}  // namespace shoal::data
