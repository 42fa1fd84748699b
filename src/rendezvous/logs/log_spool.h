// Output of a program that the coordinator has not acknowledged yet. Used by launcher.cc where it
// cannot write the log file itself.
//
// The caller bounds it: above kSpoolLimit the launcher stops reading the program's pipe, so that
// the program blocks and nothing is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace shoal::rendezvous {

inline constexpr size_t kSpoolLimit = 64 << 20;

// Queue of log chunks with a send position. Not thread-safe.
class LogSpool {
 public:
  struct Chunk {
    int attempt = 0;
    int64_t offset = 0;
    std::string bytes;
  };

  // Bytes that are appended to the attempt's log begin at this offset.
  void Begin(int attempt, int64_t offset);
  // Appends to the log of an attempt; attempts come in order. Chunks have at most kMaxLogData
  // bytes.
  void Append(int attempt, std::string_view bytes);
  // The next unsent chunk, which is marked as sent; null if there is none. Valid until the next
  // Ack.
  const Chunk* Next();
  // True if no chunk up to the end of this attempt's log is unsent.
  bool AllSent(int attempt) const;
  // The connection was lost: unacknowledged chunks are sent again.
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

// The last line with a letter or digit, for "its last line was: …". Keeps at most kLastLineBytes.
class LastLine {
 public:
  void Feed(std::string_view bytes);
  // The unfinished line if it has text, else the last complete one.
  const std::string& text() const;
  void Clear();

 private:
  std::string current_;
  std::string last_;
};

}  // namespace shoal::rendezvous
