// Examples from files of TFRecords with tf.train.Example.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "data/examples/example_source.h"
#include "data/examples/record_fields.h"
#include "data/formats/tfrecord.h"

namespace shoal::data {
namespace {

constexpr size_t kPiece = 1 << 20;

class TfRecordSource final : public ExampleSource {
 public:
  TfRecordSource(const Corpus& corpus, Shard shard, const ExampleOptions& options)
      : corpus_(corpus), shard_(std::move(shard)), options_(options), bad_(options.max_bad) {}

  Result<bool> Read(const ExampleTarget& target) override {
    if (segment_ >= shard_.segments.size()) {
      TRY(bad_.Finish());
      return false;
    }
    if (!buffer_.open()) TRY(OpenSegment());
    RowAssembler rows(*options_.csv, target.sink);
    const uint64_t until = bytes_read() + kPiece;
    while (bytes_read() < until) {
      TRY_ASSIGN(const bool more, Next(&rows));
      if (more) continue;
      buffer_.Reset(nullptr);
      ++segment_;
      break;
    }
    return true;
  }
  uint64_t bytes_read() const override { return buffer_.bytes_read(); }

 private:
  const Segment& current() const { return shard_.segments[segment_]; }
  std::string path() const { return corpus_.files()[current().file].path.string(); }

  Status OpenSegment() {
    TRY_ASSIGN(auto stream, TextStream::Open(corpus_.files()[current().file]));
    buffer_.Reset(std::move(stream));
    number_ = 0;
    return Status::Ok();
  }

  Status Malformed(uint64_t at, std::string what) {
    BadRecord bad{path(), at, number_, std::move(what)};
    return bad_.tolerates() ? bad_.Count(std::move(bad)) : InvalidArgument(bad.text());
  }

  // Takes the next record of the segment; false at its end.
  Result<bool> Next(RowAssembler* rows) {
    TfRecord record;
    const uint64_t at = buffer_.place();
    const auto more = TakeTfRecord(&buffer_, current().begin, current().end, &record);
    if (!more.ok() && more.status().code() == Code::kDataLoss)
      return DataLoss(fmt::format("{}, record {} at byte {}: {}", path(), number_ + 1, at,
                                  more.status().message()));
    if (!more.ok() || !*more) return more;
    ++number_;
    if (record.skipped) return true;
    if (!record.intact) {
      TRY(Malformed(record.begin, "its checksum is wrong"));
    } else {
      TRY(Take(record.begin, record.bytes, rows));
    }
    return true;
  }

  Status Take(uint64_t begin, std::string_view bytes, RowAssembler* rows) {
    rows->Begin();
    const std::string expected = fields_->Read(bytes, rows);
    if (!expected.empty()) return Malformed(begin, "expected " + expected);
    const RowFault fault = rows->End();
    if (fault.any())
      return Malformed(begin, fmt::format("got {}, expected {}", fault.got, fault.expected));
    bad_.CountGood();
    return Status::Ok();
  }

  const Corpus corpus_;
  const Shard shard_;
  const ExampleOptions options_;
  BadRows bad_;
  const std::unique_ptr<FieldReader> fields_ = MakeTfExampleFields();
  size_t segment_ = 0;   // the current one, or the next if no file is open
  StreamBuffer buffer_;  // of the current segment
  uint64_t number_ = 0;  // of records of the file that were passed
};

}  // namespace

std::unique_ptr<ExampleSource> MakeTfRecordSource(const Corpus& corpus, Shard shard,
                                                  const ExampleOptions& options) {
  return std::make_unique<TfRecordSource>(corpus, std::move(shard), options);
}

}  // namespace shoal::data
