// Log segments: the output of one attempt of one task, byte for byte, in DIR/logs. Written by the
// task's launcher where it sees the coordinator's directory, else by the coordinator; read by the
// controller's log store and `shoal logs`, also while they grow (docs/formats/log-segments.md).
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace shoal::rendezvous {

// Names a log: one attempt of one task.
struct LogKey {
  std::string role;
  int index = 0;
  int attempt = 0;
  auto operator<=>(const LogKey&) const = default;
};

// "worker-3.0.log". An attempt without output has no file.
std::string LogFileName(const LogKey& key);
// Whether the key, which may come from a socket, names a file inside the directory: a role of
// letters, digits, '.', '_' and '-', and no negative number.
bool IsFileName(const LogKey& key);
// None for a file of another kind, such as one that a task itself has put there.
std::optional<LogKey> ParseLogFileName(std::string_view name);

// Identifies a directory as long as this machine is up, by boot id, device and inode, which are the
// same through every mount and path. Two processes with equal identities see the same directory.
Result<std::string> DirectoryIdentity(const std::filesystem::path& directory);

// The text that replaces `bytes` lost bytes in a segment: one line, padded with blanks to that
// length, or to kLongestGapLine.
inline constexpr int64_t kLongestGapLine = 1 << 20;
std::string GapLine(int64_t bytes);

// Data bytes of one log frame; a longer line is cut into several.
inline constexpr size_t kMaxLogData = 64 << 10;

// Appends to a segment, which has one writer. Not thread-safe.
class LogWriter {
 public:
  // Opens or creates the segment in `directory` and continues at its end.
  static Result<LogWriter> Open(const std::filesystem::path& directory, const LogKey& key);

  // Stores bytes that begin at `offset`. Bytes stored before are skipped, so a sender may repeat
  // itself. Returns how many bytes were new. A gap (bytes that a full disk refused, or that an
  // earlier coordinator acknowledged and its machine lost) keeps its length and begins with
  // GapLine. After an error nothing of the call is left in the file.
  Result<int64_t> Append(int64_t offset, std::string_view bytes);

  int64_t size() const { return size_; }  // of what is stored; the offset to go on at
  int fd() const { return fd_.get(); }

 private:
  LogWriter(UniqueFd fd, int64_t size) : fd_(std::move(fd)), size_(size) {}
  Status FillGap(int64_t end);
  UniqueFd fd_;
  int64_t size_;
};

// Reads at most `limit` bytes of an open file from `offset`; empty at the end.
Result<std::string> ReadAt(int fd, int64_t offset, size_t limit);
// The same of a segment. NotFound without one.
Result<std::string> ReadSegment(const std::filesystem::path& directory, const LogKey& key,
                                int64_t offset, size_t limit);

// Of a log, whether it is a segment or was compressed (log_archive.h). NotFound without either.
Result<int64_t> LogSize(const std::filesystem::path& directory, const LogKey& key);
// At most `limit` bytes, perhaps fewer before the end; empty at the end.
Result<std::string> ReadLog(const std::filesystem::path& directory, const LogKey& key,
                            int64_t offset, size_t limit);

}  // namespace shoal::rendezvous
