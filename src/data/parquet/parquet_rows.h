// Rows of a Parquet file, one after another. Memory: one page and one dictionary of each column
// that is read, whatever the row groups' size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/formats/fields.h"
#include "data/parquet/parquet_file.h"

namespace shoal::data {

inline constexpr uint64_t kMaxParquetPage = 256u << 20;
inline constexpr uint64_t kMaxParquetPageValues = 1u << 24;

class ParquetColumnReader;

// Not thread-safe.
class ParquetRows {
 public:
  // `wants` says by name which columns are read; the bytes of others are not. Errors as
  // ReadParquetFooter.
  static Result<std::unique_ptr<ParquetRows>> Open(
      const SourceFile& file, const std::function<bool(std::string_view)>& wants,
      bool with_bounds = false);
  ~ParquetRows();

  const ParquetFooter& footer() const { return footer_; }
  // Indexes in the footer, ascending; Next gives their fields in this order.
  std::vector<size_t> columns_read() const;
  // The next row is the first of this row group.
  Status Enter(size_t group);
  // Gives the fields of the next row to the visitor; false at the row group's end. Texts are valid
  // until the next call. DataLoss, one sentence with file and column, for damaged pages.
  Result<bool> Next(FieldVisitor* visitor);
  // Passes over rows of the row group. Errors as Next.
  Status Skip(uint64_t rows);
  // Stored bytes that were read.
  uint64_t bytes_read() const;

 private:
  ParquetRows(const SourceFile& file, std::unique_ptr<ByteRanges> bytes, ParquetFooter footer);

  const SourceFile file_;
  std::unique_ptr<ByteRanges> bytes_;
  ParquetFooter footer_;
  std::vector<std::unique_ptr<ParquetColumnReader>> readers_;  // of the columns that are read
  uint64_t rows_left_ = 0;
  std::vector<TableCell> values_;
};

}  // namespace shoal::data
