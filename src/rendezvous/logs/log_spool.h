// What a program printed and the coordinator has not yet acknowledged. Used by launcher.cc where it
// cannot write the log itself.
//
// Bounded by who fills it: above kSpoolLimit the launcher stops reading the program's pipe, so the
// program waits, and nothing is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace shoal::rendezvous {

inline constexpr size_t kSpoolLimit = 64 << 20;

// Plain data structure; not thread-safe.
class LogSpool {
 public:
  struct Chunk {
    int attempt = 0;
    int64_t offset = 0;
    std::string bytes;
  };

  // What is appended to the attempt's log begins at this offset: the rest of it is stored.
  void Begin(int attempt, int64_t offset);
  // Appends to the log of an attempt; attempts come in order. Chunks are at most kMaxLogData long.
  void Append(int attempt, std::string_view bytes);
  // The next chunk to send, and marks it sent; null if all were. Valid until the next call of Ack.
  const Chunk* Next();
  // True if nothing up to the end of this attempt's log waits to be sent.
  bool AllSent(int attempt) const;
  // The connection was lost: everything that was not acknowledged is sent again.
  void Rewind() { sent_ = 0; }
  // The attempt's log is stored up to `bytes`.
  void Ack(int attempt, int64_t bytes);
  // All of the attempt's log is stored.
  void AckAll(int attempt);

  size_t bytes() const { return bytes_; }
  // Length of the log of the attempt that was appended to last.
  int64_t log_bytes(int attempt) const { return attempt == attempt_ ? offset_ : 0; }

 private:
  void DropFront();

  std::deque<Chunk> chunks_;
  size_t sent_ = 0;  // of chunks_, from the front
  size_t bytes_ = 0;
  int attempt_ = -1;
  int64_t offset_ = 0;
};

// The last line with a letter or digit of what is fed, for "its last line was: …". Keeps at most
// kLastLineBytes.
class LastLine {
 public:
  void Feed(std::string_view bytes);
  // Of the line under way if it has any text, else of the last complete one.
  const std::string& text() const;
  void Clear();

 private:
  std::string current_;
  std::string last_;
};

}  // namespace shoal::rendezvous
