// Rows as columns of typed values, and these as bytes for another process. docs/formats/batches.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "data/corpus/corpus.h"
#include "data/datasets/row_reader.h"

namespace shoal::data {

enum class BatchType : uint8_t { kNumber, kText, kBool, kNumbers, kTexts };
std::string_view NameOf(BatchType type);

struct BatchColumn {
  std::string name;
  BatchType type = BatchType::kNumber;
  bool whole = false;  // of numbers: none had a fraction or exponent
  bool bytes = false;  // texts that may be any bytes, such as images
  bool operator==(const BatchColumn&) const = default;
};

// The columns of a dataset, from the first 1000 records, or 4 MiB, of its first file, so that all
// readers find the same. `texts`: names of columns whose values are texts even if they read as
// numbers. Malformed records are passed over. InvalidArgument if there is no column.
Result<std::vector<BatchColumn>> FindBatchColumns(
    const Corpus& corpus, RecordFormat format, const std::function<bool(std::string_view)>& wants,
    const std::vector<std::string>& texts);

// Collects rows. Fields of other columns are left out; a column that a row lacks has a missing
// value in it. Not thread-safe.
class ColumnBatch final : public RowTarget {
 public:
  explicit ColumnBatch(std::vector<BatchColumn> columns);

  void BeginRow() override;
  std::string EndRow() override;  // a text in a column of numbers is wrong, and the like
  void Value(std::string_view name, const TableCell& cell) override;
  void List(std::string_view name, std::span<const TableCell> values) override;
  void LeftOut(std::string_view /*name*/) override {}

  size_t rows() const { return rows_; }
  size_t bytes() const { return bytes_; }  // about, of texts and lists
  // Appends the rows as one frame with this position, and begins anew.
  void TakeFrame(std::string_view position, std::string* to);

 private:
  // Numbers are kept as both, so that a batch without fractions and missing values is one of
  // integers.
  struct Numbers {
    std::vector<int64_t> integers;
    std::vector<double> reals;
  };
  struct Column {
    Numbers numbers;                 // of numbers, and the elements of lists of them
    std::string texts;               // of texts, and the elements of lists of them
    std::vector<uint64_t> ends;      // of each text in `texts`
    std::vector<uint8_t> flags;      // of texts and booleans, by row: 0 false, 1 true, 2 missing
    std::vector<uint64_t> elements;  // of lists: the number up to and with each row
    bool given = false;              // in the current row
  };

  size_t Find(std::string_view name);
  void Truncate(BatchType type, Column* column) const;
  void AddNumber(const TableCell& cell, size_t column);
  void AddText(const TableCell& cell, Column* column);
  void AddMissing(size_t column);
  void AddBool(const TableCell& cell, size_t column);
  void Wrong(size_t column, const TableCell& cell);

  const std::vector<BatchColumn> columns_;
  std::unordered_map<std::string_view, size_t> places_;
  std::vector<Column> values_;
  size_t rows_ = 0;
  size_t bytes_ = 0;
  size_t next_ = 0;  // the column that is expected next
  std::string room_;
  std::string fault_;
};

}  // namespace shoal::data
