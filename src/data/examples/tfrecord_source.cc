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
    if (stream_ == nullptr) TRY(OpenSegment());
    RowAssembler rows(*options_.csv, target.sink);
    const uint64_t until = bytes_read_ + kPiece;
    while (bytes_read_ < until) {
      TRY_ASSIGN(const bool more, Next(&rows));
      if (more) continue;
      stream_.reset();
      ++segment_;
      break;
    }
    return true;
  }
  uint64_t bytes_read() const override { return bytes_read_; }

 private:
  const Segment& current() const { return shard_.segments[segment_]; }
  std::string path() const { return corpus_.files()[current().file].path.string(); }

  Status OpenSegment() {
    TRY_ASSIGN(stream_, TextStream::Open(corpus_.files()[current().file]));
    buffer_.clear();
    used_ = 0;
    buffer_at_ = 0;
    number_ = 0;
    at_end_ = false;
    return Status::Ok();
  }

  // Reads until `size` bytes are there behind `used_`; false if the file ends before.
  Result<bool> Ensure(size_t size) {
    while (buffer_.size() - used_ < size && !at_end_) {
      buffer_.erase(0, used_);
      buffer_at_ += used_;
      used_ = 0;
      const size_t before = buffer_.size();
      // Grows with what is really there, whatever a length says.
      const size_t want = std::max(kPiece / 4, std::min(size - before, before + kPiece));
      buffer_.resize(before + want);
      auto got = stream_->Read(buffer_.data() + before, want);
      buffer_.resize(before + got.value_or(0));
      if (!got.ok()) return got.status();
      bytes_read_ += *got;
      at_end_ = *got == 0;
    }
    return buffer_.size() - used_ >= size;
  }

  Status Broken(const std::string& what) const {
    return DataLoss(
        fmt::format("{}, record {} at byte {}: {}", path(), number_ + 1, buffer_at_ + used_, what));
  }

  Status Malformed(uint64_t at, std::string what) {
    BadRecord bad{path(), at, number_, std::move(what)};
    return bad_.tolerates() ? bad_.Count(std::move(bad)) : InvalidArgument(bad.text());
  }

  // Moves over a record of an earlier shard.
  Status Skip(uint64_t size) {
    const uint64_t end = buffer_at_ + used_ + size;
    if (buffer_.size() - used_ >= size) {
      used_ += static_cast<size_t>(size);
      return Status::Ok();
    }
    TRY(stream_->SkipTo(end));
    if (stream_->position() < end) return Broken("the file ends inside a record");
    buffer_.clear();
    used_ = 0;
    buffer_at_ = end;
    return Status::Ok();
  }

  // Takes the next record of the segment; false at its end.
  Result<bool> Next(RowAssembler* rows) {
    TRY_ASSIGN(const bool head, Ensure(kTfRecordHead));
    const uint64_t begin = buffer_at_ + used_;
    if (begin >= current().end) return false;
    if (!head) {
      if (buffer_.size() == used_) return false;
      return Broken("the file ends inside a record");
    }
    const auto length = TfRecordLength(std::string_view(buffer_).substr(used_, kTfRecordHead));
    if (!length.ok()) return Broken(length.status().message());
    if (*length > kMaxRecord) {
      return Broken(fmt::format("it has {} bytes, more than {} MiB", *length, kMaxRecord >> 20));
    }
    const auto size = static_cast<size_t>(*length);
    if (begin < current().begin) {
      TRY(Skip(kTfRecordHead + size + kTfRecordFoot));
      ++number_;
      return true;
    }
    TRY_ASSIGN(const bool whole, Ensure(kTfRecordHead + size + kTfRecordFoot));
    if (!whole) return Broken("the file ends inside a record");
    ++number_;
    const std::string_view all =
        std::string_view(buffer_).substr(used_, kTfRecordHead + size + kTfRecordFoot);
    used_ += all.size();
    const std::string_view bytes = all.substr(kTfRecordHead, size);
    if (!MatchesMaskedCrc(bytes, all.substr(kTfRecordHead + size))) {
      TRY(Malformed(begin, "its checksum is wrong"));
      return true;
    }
    TRY(Take(begin, bytes, rows));
    return true;
  }

  Status Take(uint64_t begin, std::string_view bytes, RowAssembler* rows) {
    rows->Begin();
    const std::string expected = fields_->Read(bytes, rows);
    if (!expected.empty()) return Malformed(begin, "expected " + expected);
    const RowFault fault = rows->End();
    if (fault.any())
      return Malformed(begin, fmt::format("got '{}', expected {}", fault.got, fault.expected));
    bad_.CountGood();
    return Status::Ok();
  }

  const Corpus corpus_;
  const Shard shard_;
  const ExampleOptions options_;
  BadRows bad_;
  const std::unique_ptr<FieldReader> fields_ = MakeTfExampleFields();
  size_t segment_ = 0;                  // the current one, or the next if there is no stream
  std::unique_ptr<TextStream> stream_;  // of the current segment; null between segments
  std::string buffer_;
  size_t used_ = 0;         // bytes of buffer_ that are done with
  uint64_t buffer_at_ = 0;  // place of buffer_'s first byte in the file
  bool at_end_ = false;
  uint64_t number_ = 0;  // of records of the file that were passed
  uint64_t bytes_read_ = 0;
};

}  // namespace

std::unique_ptr<ExampleSource> MakeTfRecordSource(const Corpus& corpus, Shard shard,
                                                  const ExampleOptions& options) {
  return std::make_unique<TfRecordSource>(corpus, std::move(shard), options);
}

}  // namespace shoal::data
