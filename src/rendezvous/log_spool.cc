#include "rendezvous/log_spool.h"

#include <algorithm>

#include "rendezvous/protocol.h"

namespace shoal::rendezvous {
namespace {

constexpr size_t kLastLineBytes = 200;

// A letter, a digit, or a byte of either beyond ASCII: rules of '-' or '=' say nothing.
bool IsText(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') ||
         ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}

}  // namespace

void LogSpool::Append(int attempt, std::string_view bytes) {
  if (attempt != attempt_) {
    attempt_ = attempt;
    offset_ = 0;
  }
  while (!bytes.empty()) {
    // Small writes join the last chunk as long as it has not left.
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
    // A chunk that was not sent may still grow.
    const bool stored = front.attempt < attempt || (front.attempt == attempt && end <= bytes);
    if (!stored || sent_ == 0) return;
    DropFront();
  }
}

void LogSpool::AckAll(int attempt) {
  while (!chunks_.empty() && chunks_.front().attempt <= attempt) DropFront();
}

void LastLine::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    const size_t room = kLastLineBytes - std::min(kLastLineBytes, current_.size());
    current_.append(part.substr(0, room));
    if (end == std::string_view::npos) return;
    if (std::any_of(current_.begin(), current_.end(), IsText)) last_ = current_;
    current_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void LastLine::Clear() {
  current_.clear();
  last_.clear();
}

}  // namespace shoal::rendezvous
