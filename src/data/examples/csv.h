// What the columns of a CSV file are: which one is the label, which hold numbers, and the feature
// that a cell stands for. Made once from the first line of the data; examples.h reads by it.
//
// A cell that is a finite number is the value of its column's feature; any other text, and whatever
// stands in a column named as categorical, is a feature of its own with value 1. Empty cells are no
// features. Features are hashed, by FNV-1a of "COLUMN" or "COLUMN=TEXT" (docs/formats/examples.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/corpus/corpus.h"

namespace shoal::data {

inline constexpr size_t kMaxCsvColumns = 65536;

enum class CsvHeader : uint8_t { kAuto = 0, kYes = 1, kNo = 2 };

// How the columns of a file were read: kept with a model, so that other files are read alike.
struct CsvSchema {
  bool header = false;             // the first line named the columns
  std::string label;               // one of `names`
  std::vector<std::string> names;  // in order, the label's too; "1", "2", … without a header
  std::vector<std::string> categorical;  // some of them
  bool operator==(const CsvSchema&) const = default;
};

struct CsvOptions {
  std::string label;        // the column's name, or its number from 1; empty: the first
  std::string categorical;  // names or numbers, separated by commas
  char delimiter = ',';
  CsvHeader header = CsvHeader::kAuto;  // kAuto: the first line is one if no cell is a number
  bool label_needed = true;             // false: a column of that name may be missing
  // Of the data that a model was trained on. Label and categorical columns are then its own, and
  // columns without a header have its names: all of them, or all but the label's.
  std::optional<CsvSchema> trained = std::nullopt;
};

// Constant after Make.
struct CsvColumns {
  struct Column {
    uint64_t feature = 0;  // of a number: the hash of the column's name
    bool categorical = false;
    // The column's place among all but the label's, in the order of their features: columns that
    // stand in another order are the same fields.
    uint16_t field = 0;
  };
  static constexpr size_t kNone = SIZE_MAX;

  // Reads the first line of the first file. InvalidArgument names the file, and the column that is
  // not there or twice. Columns without a header are called "1", "2", ….
  static Result<std::shared_ptr<const CsvColumns>> Make(const Corpus& corpus,
                                                        const CsvOptions& options);
  // The same from that line, without its newline.
  static Result<std::shared_ptr<const CsvColumns>> FromFirstLine(std::string_view line,
                                                                 const CsvOptions& options);

  std::vector<Column> columns;
  size_t label = kNone;
  char delimiter = ',';
  std::string header;  // the line that every file begins with; empty: none
  CsvSchema schema;    // with label == kNone its label is empty
};

// The next cell of [*at, end) as it is meant: without quotes, and without blanks around it. False
// if a quote is not closed. `*at` comes behind the delimiter, or one behind the end after the last
// cell. `room` holds the text where the cell's own bytes do not.
bool NextCell(const char** at, const char* end, char delimiter, std::string* room,
              std::string_view* cell);

// FNV-1a, 64 bits (Fowler, Noll, Vo): of `bytes` behind what gave `hash`.
inline constexpr uint64_t kFnvOffset = 0xcbf2'9ce4'8422'2325;
inline uint64_t HashBytes(std::string_view bytes, uint64_t hash = kFnvOffset) {
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100'0000'01b3;
  return hash;
}

}  // namespace shoal::data
