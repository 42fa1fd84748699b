#include "data/formats/stream_buffer.h"

#include <algorithm>
#include <utility>

namespace shoal::data {
namespace {

constexpr size_t kBlock = 256 << 10;
constexpr size_t kMostAtOnce = 1 << 20;

}  // namespace

void StreamBuffer::Reset(std::unique_ptr<TextStream> stream) {
  stream_ = std::move(stream);
  bytes_.clear();
  used_ = 0;
  begin_ = 0;
  at_end_ = false;
}

Result<bool> StreamBuffer::Ensure(size_t size) {
  while (bytes_.size() - used_ < size && !at_end_) {
    if (used_ > 0) {
      bytes_.erase(0, used_);
      begin_ += used_;
      used_ = 0;
    }
    const size_t before = bytes_.size();
    const size_t want = std::max(kBlock, std::min(size - before, before + kMostAtOnce));
    bytes_.resize(before + want);
    auto got = stream_->Read(bytes_.data() + before, want);
    bytes_.resize(before + got.value_or(0));
    if (!got.ok()) return got.status();
    bytes_read_ += *got;
    at_end_ = *got == 0;
  }
  return bytes_.size() - used_ >= size;
}

Result<bool> StreamBuffer::Skip(uint64_t size) {
  if (bytes_.size() - used_ >= size) {
    used_ += static_cast<size_t>(size);
    return true;
  }
  const uint64_t end = place() + size;
  TRY(stream_->SkipTo(end));
  bytes_.clear();
  used_ = 0;
  begin_ = end;
  return stream_->position() >= end;
}

Result<LineKind> TakeLine(StreamBuffer* buffer, size_t most, std::string_view* line) {
  size_t searched = 0;
  bool too_long = false;
  for (;;) {
    const std::string_view unused = buffer->unused();
    const size_t newline = unused.find('\n', searched);
    const bool found = newline != std::string_view::npos;
    if (found || buffer->at_end()) {
      if (!found && unused.empty() && !too_long) return LineKind::kNone;
      *line = unused.substr(0, newline);
      buffer->Use(found ? newline + 1 : unused.size());
      if (line->ends_with('\r')) line->remove_suffix(1);
      return too_long ? LineKind::kTooLong : LineKind::kLine;
    }
    searched = unused.size();
    if (searched > most) {
      too_long = true;
      buffer->Use(searched);
      searched = 0;
    }
    TRY(buffer->Ensure(searched + 1).status());
  }
}

}  // namespace shoal::data
