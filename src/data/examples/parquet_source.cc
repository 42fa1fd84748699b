// Examples from Parquet files. A row group belongs to the shard in which its first byte lies.
#include <algorithm>
#include <string>
#include <utility>

#include "data/examples/example_source.h"
#include "data/examples/record_fields.h"
#include "data/parquet/parquet_rows.h"

namespace shoal::data {
namespace {

constexpr uint64_t kRowsOfPiece = 4096;

class ParquetSource final : public ExampleSource {
 public:
  ParquetSource(const Corpus& corpus, Shard shard, const ExampleOptions& options)
      : corpus_(corpus), shard_(std::move(shard)), options_(options), bad_(options.max_bad) {}

  Result<bool> Read(const ExampleTarget& target) override {
    if (segment_ >= shard_.segments.size()) {
      TRY(bad_.Finish());
      return false;
    }
    if (rows_ == nullptr) TRY(OpenSegment());
    RowAssembler assembler(*options_.csv, target.sink);
    for (uint64_t i = 0; i < kRowsOfPiece; ++i) {
      assembler.Begin();
      TRY_ASSIGN(const bool more, rows_->Next(&assembler));
      if (more) {
        TRY(Take(&assembler));
        continue;
      }
      TRY_ASSIGN(const bool entered, EnterNext());
      if (entered) continue;
      bytes_before_ += rows_->bytes_read();
      rows_.reset();
      ++segment_;
      break;
    }
    return true;
  }
  uint64_t bytes_read() const override {
    return bytes_before_ + (rows_ == nullptr ? 0 : rows_->bytes_read());
  }

 private:
  Status OpenSegment() {
    const std::vector<std::string>& names = options_.csv->schema.names;
    const auto wants = [&](std::string_view name) {
      const std::string first = std::string(name) + ".0";
      return std::ranges::any_of(
          names, [&](const std::string& one) { return one == name || one == first; });
    };
    TRY_ASSIGN(rows_, ParquetRows::Open(corpus_.files()[shard_.segments[segment_].file], wants));
    next_group_ = 0;
    row_ = 0;
    return EnterNext().status();
  }

  // Enters the next row group of the segment; false at its end.
  Result<bool> EnterNext() {
    const Segment& segment = shard_.segments[segment_];
    const std::vector<ParquetRowGroup>& groups = rows_->footer().groups;
    for (; next_group_ < groups.size(); ++next_group_) {
      const ParquetRowGroup& group = groups[next_group_];
      if (group.begin >= segment.begin && group.begin < segment.end) {
        TRY(rows_->Enter(next_group_++));
        return true;
      }
      row_ += group.rows;
    }
    return false;
  }

  Status Take(RowAssembler* assembler) {
    ++row_;
    const RowFault fault = assembler->End();
    if (!fault.any()) {
      bad_.CountGood();
      return Status::Ok();
    }
    const std::string path = corpus_.files()[shard_.segments[segment_].file].path.string();
    const std::string what = "got " + fault.got + ", expected " + fault.expected;
    if (bad_.tolerates()) return bad_.Count({path, 0, row_, what});
    return InvalidArgument(path + ", row " + std::to_string(row_) + ": " + what);
  }

  const Corpus corpus_;
  const Shard shard_;
  const ExampleOptions options_;
  BadRows bad_;
  size_t segment_ = 0;
  std::unique_ptr<ParquetRows> rows_;  // of the current segment; null between segments
  size_t next_group_ = 0;
  uint64_t row_ = 0;  // of the file
  uint64_t bytes_before_ = 0;
};

}  // namespace

std::unique_ptr<ExampleSource> MakeParquetSource(const Corpus& corpus, Shard shard,
                                                 const ExampleOptions& options) {
  return std::make_unique<ParquetSource>(corpus, std::move(shard), options);
}

}  // namespace shoal::data
