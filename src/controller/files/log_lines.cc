#include "controller/files/log_lines.h"

#include <algorithm>
#include <utility>

namespace shoal::controller {
namespace {

// Pieces are shorter than a line may be, so that only the first line of one can be too long.
constexpr size_t kPiece = size_t{512} << 10;

}  // namespace

Result<bool> LineScanner::Add(int64_t offset, std::string_view bytes, const OnLine& on_line) {
  if (offset != at_ + static_cast<int64_t>(rest_.size())) {
    rest_.clear();
    at_ = offset;
  }
  while (!bytes.empty()) {
    TRY_ASSIGN(const bool more, AddPiece(bytes.substr(0, kPiece), on_line));
    if (!more) return false;
    bytes.remove_prefix(std::min(kPiece, bytes.size()));
  }
  return true;
}

Result<bool> LineScanner::AddPiece(std::string_view bytes, const OnLine& on_line) {
  if (!rest_.empty()) {
    const size_t feed = bytes.find('\n');
    const size_t take = feed == std::string_view::npos ? bytes.size() : feed + 1;
    rest_ += bytes.substr(0, take);
    bytes.remove_prefix(take);
    // A line is cut at the same bytes however it arrives.
    while (rest_.size() > kLongestLine && rest_[kLongestLine] != '\n') {
      TRY_ASSIGN(const bool more,
                 Scan(at_, std::string_view(rest_).substr(0, kLongestLine), on_line));
      rest_.erase(0, kLongestLine);
      at_ += static_cast<int64_t>(kLongestLine);
      if (!more) return false;
    }
    if (feed == std::string_view::npos) return true;
    TRY_ASSIGN(const bool more, Scan(at_, rest_, on_line));
    at_ += static_cast<int64_t>(rest_.size());
    rest_.clear();
    if (!more) return false;
  }
  const size_t last = bytes.rfind('\n');
  const size_t whole = last == std::string_view::npos ? 0 : last + 1;
  if (whole > 0) {
    TRY_ASSIGN(const bool more, Scan(at_, bytes.substr(0, whole), on_line));
    at_ += static_cast<int64_t>(whole);
    if (!more) return false;
  }
  rest_ = bytes.substr(whole);
  return true;
}

Result<bool> LineScanner::Finish(const OnLine& on_line) {
  if (rest_.empty()) return true;
  const std::string line = std::exchange(rest_, {});
  const int64_t offset = std::exchange(at_, at_ + static_cast<int64_t>(line.size()));
  return Scan(offset, line, on_line);
}

bool LineScanner::Within(const std::optional<WallTime>& time) const {
  if (filter_.since) {
    // Bytes without an entry are not later than the first entry, or than the last write.
    const WallTime latest = times_.entries.empty() ? times_.modified : times_.entries.front().time;
    if (time.value_or(latest) < *filter_.since) return false;
  }
  return !filter_.until || !time || *time < *filter_.until;
}

Status LineScanner::LoadTimes(int64_t offset, int64_t end) {
  if (offset >= covered_from_ && end <= covered_to_) return Status::Ok();
  TRY_ASSIGN(times_, times_from_(offset));
  covered_from_ = offset;
  covered_to_ =
      times_.entries.size() < rendezvous::kMaxLogTimes ? end : times_.entries.back().offset;
  return Status::Ok();
}

Result<bool> LineScanner::Scan(int64_t offset, std::string_view lines, const OnLine& on_line) {
  Status status;
  bool more = true;
  const auto found = [&](size_t at, std::string_view text) {
    LogLine line{offset + static_cast<int64_t>(at), text};
    if (with_times_) {
      if (line.offset >= covered_to_) status = LoadTimes(line.offset, offset + std::ssize(lines));
      if (!status.ok()) return false;
      line.time = times_.Find(line.offset);
      if (!Within(line.time)) return true;
    }
    return more = on_line(line);
  };
  // The times of the block, unless it has more entries than one read returns.
  if (with_times_) TRY(LoadTimes(offset, offset + std::ssize(lines)));
  if (filter_.grep != nullptr) {
    filter_.grep->FindLines(lines, found);
  } else {
    for (size_t at = 0; at < lines.size();) {
      const size_t end = std::min(lines.find('\n', at), lines.size());
      if (!found(at, lines.substr(at, end - at))) break;
      at = end + 1;
    }
  }
  TRY(status);
  return more;
}

Result<int64_t> OffsetSince(const LineScanner::TimesFrom& times_from, WallTime since) {
  int64_t begin = 0;
  for (int64_t from = 0;;) {
    TRY_ASSIGN(const rendezvous::LogTimes times, times_from(from));
    // The bytes before the first entry may be as late as it is.
    for (const rendezvous::LogTime& entry : times.entries) {
      if (entry.time >= since) return begin;
      begin = entry.offset;
    }
    if (times.entries.size() < rendezvous::kMaxLogTimes) return begin;
    if (times.entries.back().offset <= from) return begin;
    from = times.entries.back().offset;
  }
}

}  // namespace shoal::controller
