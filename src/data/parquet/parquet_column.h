// The values of one column of one row group. Private to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/formats/fields.h"
#include "data/parquet/encodings.h"
#include "data/parquet/parquet_file.h"

namespace shoal::data {

// Not thread-safe.
class ParquetColumnReader {
 public:
  // Both must outlive it. `index`: of the column in the footer.
  ParquetColumnReader(const ParquetColumn& column, size_t index, ByteRanges* bytes)
      : column_(column), index_(index), file_(*bytes) {}

  const ParquetColumn& column() const { return column_; }
  size_t index() const { return index_; }
  Status Enter(const ParquetChunk& chunk);
  // Appends the values of the next row: of a flat column one cell. Texts are valid until the next
  // call. DataLoss without file and column.
  Status NextRow(std::vector<TableCell>* values);
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct PageHead;
  // Texts of values point into `bytes`.
  struct Page {
    std::string bytes;
    ParquetValues values;
  };
  Result<bool> NextPage();
  Result<PageHead> ReadHead();
  Status Ensure(size_t size);
  Status UnpackPage(const PageHead& head, std::string_view stored, std::string* to) const;
  Status TakeDictionary(const PageHead& head, std::string_view stored);
  Status TakeData(const PageHead& head);
  Status TakeLevels(const PageHead& head, std::string_view* page);
  Status ReadLevels(std::string_view bytes, int highest, size_t count,
                    std::vector<uint32_t>* levels) const;
  // Whether there is a slot of a value or null left; loads the next page.
  Result<bool> HasSlot();
  TableCell Take();
  TableCell CellAt(const ParquetValues& values, size_t i) const;
  size_t SizeOf(const ParquetValues& values) const;
  bool IsTexts() const;

  const ParquetColumn& column_;
  const size_t index_;
  ByteRanges& file_;
  ParquetChunk chunk_;

  std::string window_;  // stored bytes from window_at_ on
  size_t used_ = 0;
  uint64_t window_at_ = 0;
  uint64_t bytes_read_ = 0;

  uint64_t values_left_ = 0;  // of the chunk, in pages that are not loaded
  std::unique_ptr<Page> page_;
  std::vector<std::unique_ptr<Page>> old_pages_;  // of the current row
  std::unique_ptr<Page> dictionary_;              // null: none so far
  bool indexed_ = false;                          // the page holds indices
  std::vector<uint32_t> indices_;
  std::vector<uint32_t> definitions_;  // empty: all are the highest
  std::vector<uint32_t> repetitions_;
  size_t slots_ = 0;  // of the page
  size_t slot_ = 0;   // the next one
  size_t value_ = 0;  // the next value
};

}  // namespace shoal::data
