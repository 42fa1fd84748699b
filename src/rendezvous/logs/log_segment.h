// Log segments: what one attempt of one task printed, byte for byte, in DIR/logs. The task's
// launcher writes them where it sees the coordinator's directory, else the coordinator; the
// controller's log store and `shoal logs` read them, also while they grow
// (docs/formats/rendezvous.md, "Log segments").
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

// Which log: one attempt of one task.
struct LogKey {
  std::string role;
  int index = 0;
  int attempt = 0;
  auto operator<=>(const LogKey&) const = default;
};

// "worker-3.0.log". An attempt that printed nothing has no file.
std::string LogFileName(const LogKey& key);
// Whether the key, which may have come over a socket, names a file of its directory.
bool IsFileName(const LogKey& key);
// None for a file of another kind.
std::optional<LogKey> ParseLogFileName(std::string_view name);

// Names a directory as long as this machine is up: its boot, device and inode, which are the same
// through every mount and every path. Whoever finds the same for a directory of his own sees that
// one.
Result<std::string> DirectoryIdentity(const std::filesystem::path& directory);

// What stands in a segment in the place of `bytes` that are lost: a line, filled up with blanks to
// that length, or to kLongestGapLine.
inline constexpr int64_t kLongestGapLine = 1 << 20;
std::string GapLine(int64_t bytes);

// Appends; one writer a segment. Not thread-safe.
class LogWriter {
 public:
  // Opens or makes the segment in `directory`, and goes on at its end.
  static Result<LogWriter> Open(const std::filesystem::path& directory, const LogKey& key);

  // Stores bytes that begin at `offset`. What is stored already is skipped, so a sender may repeat
  // itself: each byte is stored once. Gives how many bytes were new. A gap (bytes for which the
  // disk had no room, or that an earlier coordinator acknowledged and a crash of its machine lost)
  // keeps its length and begins with a line that tells of it (GapLine). After an error nothing of
  // the call is left in the file.
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
Result<std::string> ReadLog(const std::filesystem::path& directory, const LogKey& key,
                            int64_t offset, size_t limit);

}  // namespace shoal::rendezvous
