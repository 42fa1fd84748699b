// The time index of a log segment: when which of its bytes were stored, in a file beside it
// (docs/formats/log-segments.md). Written by TimedLogWriter; read by the controller's log store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace shoal::rendezvous {

struct LogKey;

// The bytes from `offset` on, up to the next entry's, were stored at `time` or less than a second
// later.
struct LogTime {
  int64_t offset = 0;
  WallTime time{};
  bool operator==(const LogTime&) const = default;
};

// What is known of the times of a segment.
struct LogTimes {
  std::vector<LogTime> entries;  // by offset; the clock may have been set back between two
  // When the segment was last written: no byte is later. For the bytes before the first entry.
  WallTime modified{};

  // When the byte at `offset` was stored; none before the first entry. O(log entries).
  std::optional<WallTime> Find(int64_t offset) const;
};

// "worker-3.0.times".
std::string LogTimesFileName(const LogKey& key);

// An entry is written for the first byte of each second, and after so many bytes.
inline constexpr int64_t kLogTimeBytes = 64 << 10;
// Entries that one read returns at most: four hours of a task that prints each second.
inline constexpr size_t kMaxLogTimes = size_t{1} << 14;

// Appends to an index. Not thread-safe. A failure to write costs times, never lines.
class LogTimesWriter {
 public:
  // Nothing is opened before the first entry. `clock` must outlive the writer.
  LogTimesWriter(std::filesystem::path path, const Clock* clock)
      : path_(std::move(path)), clock_(clock) {}

  // The byte at `offset` is stored next; called before it is, so that a reader of the byte finds
  // its time. A write of 16 bytes each second or kLogTimeBytes, else a look at the clock.
  void Note(int64_t offset) {
    const WallTime now = clock_->Wall();
    const int64_t second = now.time_since_epoch().count() / kMicros;
    if (second == second_ && offset < due_) return;
    Write(offset, now);
    second_ = second;
    due_ = offset + kLogTimeBytes;
  }

 private:
  static constexpr int64_t kMicros = 1'000'000;
  void Write(int64_t offset, WallTime now);
  Status Open(int64_t offset);

  std::filesystem::path path_;
  const Clock* clock_;
  UniqueFd fd_;
  int64_t size_ = 0;     // of the index in bytes
  int64_t second_ = -1;  // of the last entry
  int64_t due_ = 0;      // offset at which the next entry is written in any case
};

// The entries from the one that covers the byte `from` on, at most kMaxLogTimes. Entries that a
// crash has left unusable are skipped; without an index there are none. NotFound without a segment.
Result<LogTimes> ReadLogTimes(const std::filesystem::path& directory, const LogKey& key,
                              int64_t from);

}  // namespace shoal::rendezvous
