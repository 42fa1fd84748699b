// The columns of a table, first of all of CSV: which is the label, which are numeric, and the
// feature of a cell. Built once from the beginning of the data; the example reader uses it.
//
// A cell with a finite number is the value of its column's feature. Any other text, and any cell of
// a column that is declared categorical, is a feature of its own with value 1. Empty cells give no
// feature, or one of their own where columns are scaled (column_scaling.h). Features are FNV-1a
// hashes of "COLUMN" or "COLUMN=TEXT" (docs/formats/examples.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/examples/column_scaling.h"
#include "data/formats/csv_cells.h"

namespace shoal::data {

enum class ExampleFormat : uint8_t;

enum class CsvHeader : uint8_t { kAuto = 0, kYes = 1, kNo = 2 };

// How the columns of a file were interpreted. Stored with a model, so that other files are read in
// the same way.
struct CsvSchema {
  bool header = false;                   // the first line named the columns
  std::string label;                     // one of `names`
  std::vector<std::string> names;        // in order, label included; "1", "2", … without a header
  std::vector<std::string> categorical;  // some of them
  std::vector<ColumnScale> scales = {};  // of `names`; empty: numbers are used as they are
  float row_scale = 1;                   // factor of all values, where there are scales
  // The names of labels 0, 1, …; empty: -1 or 0, and 1, or numbers.
  std::vector<std::string> classes = {};
  std::string weight = {};  // the column of the examples' weights, no feature; empty: none
  std::string key = {};     // a column that names the examples, no feature; empty: none
  bool operator==(const CsvSchema&) const = default;
};

struct CsvOptions {
  std::string label = {};        // the column's name, or its number from 1; empty: the first
  std::string categorical = {};  // names or numbers, separated by commas
  char delimiter = ',';
  CsvHeader header = CsvHeader::kAuto;  // kAuto: the first line is one if no cell is a number
  bool label_needed = true;             // false: the label column may be missing
  std::string weight = {};              // column of weights, by name or number; empty: none
  std::string key = {};                 // likewise, of the examples' keys
  bool keep_keys = false;               // store ExampleSet::keys
  bool keep_weights = false;            // with `trained`: read its column of weights
  // The schema of the data that a model was trained on. It determines the label and the categorical
  // columns, and names the columns of files without a header: all of them, or all but the label.
  std::optional<CsvSchema> trained = std::nullopt;
};

// The interpreted columns. Immutable after Make; thread-safe.
struct CsvColumns {
  struct Column {
    uint64_t feature = 0;  // of numeric cells: hash of the column's name
    bool categorical = false;
    bool ignored = false;  // no feature
    // The column's index among all but the label, ordered by feature: reordered columns keep their
    // fields.
    uint16_t field = 0;
    ColumnScale scale = {};  // if CsvColumns::scaled
  };
  static constexpr size_t kNone = SIZE_MAX;

  // Reads the first line of the first file. InvalidArgument names the file and the column that is
  // missing or duplicate. Without a header columns are called "1", "2", ….
  static Result<std::shared_ptr<const CsvColumns>> Make(const Corpus& corpus,
                                                        const CsvOptions& options);
  // As Make, from that line without its newline.
  static Result<std::shared_ptr<const CsvColumns>> FromFirstLine(std::string_view line,
                                                                 const CsvOptions& options);

  // From the names of a table whose records name their fields. With options.trained the columns are
  // those of the training data, present or not. Errors as Make, without the file.
  static Result<std::shared_ptr<const CsvColumns>> FromNames(std::vector<std::string> names,
                                                             const CsvOptions& options);

  std::vector<Column> columns;
  size_t label = kNone;
  size_t weight = kNone;  // read for every example
  size_t key = kNone;     // likewise
  char delimiter = ',';
  std::string header;  // the line that every file begins with; empty: none
  CsvSchema schema;    // with label == kNone its label is empty; its scales are the trained ones
  bool scaled = false;
  std::vector<std::string> absent;  // names that FromNames took from options.trained only

  bool IsFeature(size_t column) const { return column != label && !columns[column].ignored; }
  // The same columns with these scales, one for each of schema.names.
  std::shared_ptr<const CsvColumns> WithScales(std::vector<ColumnScale> scales,
                                               float row_scale) const;

 private:
  static Result<std::shared_ptr<CsvColumns>> Interpret(std::vector<std::string> names, bool header,
                                                       const CsvOptions& options);
};

// The columns of a table of any format. Of JSON lines, TFRecord and Parquet they are those of the
// first records of the first file, up to 1000 or 4 MiB of them; fields that come up later are left
// out. Errors as CsvColumns::Make and RecordReader::Next.
Result<std::shared_ptr<const CsvColumns>> FindColumns(ExampleFormat format, const Corpus& corpus,
                                                      const CsvOptions& options);

// FNV-1a, 64 bits (Fowler, Noll, Vo), continued from `hash`.
inline constexpr uint64_t kFnvOffset = 0xcbf2'9ce4'8422'2325;
inline uint64_t HashBytes(std::string_view bytes, uint64_t hash = kFnvOffset) {
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100'0000'01b3;
  return hash;
}

}  // namespace shoal::data
