// Rows as text or records of a format.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/datasets/column_batch.h"
#include "data/datasets/row_reader.h"

namespace shoal::data {

// Appends each row to a text. Not thread-safe.
class RowWriter : public RowTarget {
 public:
  // CSV, TSV, JSON lines, TFRecord with tf.train.Example, libsvm of rows with `label`, `indices`
  // and `values`, or text of one column, whose line ends become blanks. `columns`: of the data
  // (FindBatchColumns); of CSV and TSV they are the first line, of TFRecord they say which numbers
  // are integers. InvalidArgument for other formats, and for columns that the format has not, such
  // as lists in CSV.
  static Result<std::unique_ptr<RowWriter>> Make(RecordFormat format,
                                                 std::vector<BatchColumn> columns);

  // What comes before the rows of each file.
  virtual std::string Head() const { return ""; }
  std::string* text() { return &text_; }

 protected:
  std::string text_;
};

// Appends a cell as NextCell reads it again. What is wrong with it, else empty.
std::string AppendCsvCell(std::string_view cell, char delimiter, std::string* line);

}  // namespace shoal::data
