#include "rendezvous/logs/log_spool.h"

#include <algorithm>

#include "rendezvous/logs/last_line.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::rendezvous {
namespace {

// A letter, a digit, or a byte of one beyond ASCII: lines of '-' or '=' say nothing.
bool IsText(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') ||
         ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}

bool HasText(std::string_view line) { return std::any_of(line.begin(), line.end(), IsText); }

}  // namespace

void LogSpool::Begin(int attempt, int64_t offset) {
  attempt_ = attempt;
  offset_ = offset;
}

void LogSpool::Append(int attempt, std::string_view bytes) {
  if (attempt != attempt_) {
    attempt_ = attempt;
    offset_ = 0;
  }
  while (!bytes.empty()) {
    // Small writes join the last chunk unless it was sent.
    const bool joins = chunks_.size() > sent_ && chunks_.back().attempt == attempt &&
                       chunks_.back().bytes.size() < kMaxLogData;
    if (!joins) chunks_.push_back({attempt, offset_, {}});
    Chunk& chunk = chunks_.back();
    const size_t take = std::min(bytes.size(), kMaxLogData - chunk.bytes.size());
    chunk.bytes.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    bytes_ += take;
    offset_ += static_cast<int64_t>(take);
  }
}

const LogSpool::Chunk* LogSpool::Next() {
  if (sent_ >= chunks_.size()) return nullptr;
  return &chunks_[sent_++];
}

bool LogSpool::AllSent(int attempt) const {
  return sent_ >= chunks_.size() || chunks_[sent_].attempt > attempt;
}

void LogSpool::DropFront() {
  bytes_ -= chunks_.front().bytes.size();
  chunks_.pop_front();
  if (sent_ > 0) --sent_;
}

void LogSpool::Ack(int attempt, int64_t bytes) {
  while (!chunks_.empty()) {
    const Chunk& front = chunks_.front();
    const int64_t end = front.offset + static_cast<int64_t>(front.bytes.size());
    // An unsent chunk may still grow.
    const bool stored = front.attempt < attempt || (front.attempt == attempt && end <= bytes);
    if (!stored || sent_ == 0) return;
    DropFront();
  }
}

void LogSpool::AckAll(int attempt) {
  while (!chunks_.empty() && chunks_.front().attempt <= attempt) DropFront();
}

void LastLine::Feed(std::string_view bytes) {
  const auto add = [this](std::string_view part) {
    const size_t room = kLastLineBytes - std::min(kLastLineBytes, current_.size());
    current_.append(part.substr(0, room));
  };
  const size_t first = bytes.find('\n');
  add(bytes.substr(0, first));
  if (first == std::string_view::npos) return;
  if (HasText(current_)) last_ = current_;
  bytes.remove_prefix(first + 1);
  current_.clear();
  // Only the last line with text counts, so the search goes from the end.
  const size_t last = bytes.rfind('\n');
  add(bytes.substr(last == std::string_view::npos ? 0 : last + 1));
  for (size_t end = last; end != std::string_view::npos;) {
    const size_t before = end == 0 ? std::string_view::npos : bytes.rfind('\n', end - 1);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view line = bytes.substr(begin, std::min(end - begin, kLastLineBytes));
    if (HasText(line)) {
      last_ = line;
      return;
    }
    end = before;
  }
}

const std::string& LastLine::text() const { return HasText(current_) ? current_ : last_; }

void LastLine::Clear() {
  current_.clear();
  last_.clear();
}

}  // namespace shoal::rendezvous
