// Compressed log segments: what replaces a segment once nothing is appended to it any more
// (docs/formats/log-segments.md). `zstd -d` reads them; a table at the end finds the frame of an
// offset. Made by the server's log keeper; read through log_segment.h and log_file.h, which read
// both kinds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "rendezvous/logs/log_segment.h"

struct ZSTD_DCtx_s;  // of zstd.h

namespace shoal::rendezvous {

// Bytes of the log in a frame; the last frame may have fewer.
inline constexpr int64_t kArchiveFrame = 256 << 10;

// "worker-3.0.log.zst".
std::string ArchiveFileName(const LogKey& key);
// None for a file of another kind, or a segment.
std::optional<LogKey> ParseArchiveFileName(std::string_view name);

// An open archive. Not thread-safe. Everything read from the file is checked: DataLoss.
class LogArchive {
 public:
  // NotFound.
  static Result<LogArchive> Open(const std::filesystem::path& path);

  // Bytes of the log.
  int64_t size() const { return size_; }
  // The bytes from `offset` to the end of its frame, at most; empty at the end. Valid until the
  // next call. Cost: a frame is decompressed, unless the last call was in the same one.
  Result<std::string_view> Read(int64_t offset);

 private:
  struct Frame {
    int64_t begin = 0;  // in the file
    int64_t bytes = 0;  // likewise
  };
  struct FreeContext {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  LogArchive(UniqueFd fd, std::vector<Frame> frames, int64_t size);
  Status Load(int64_t number);

  UniqueFd fd_;
  std::vector<Frame> frames_;
  int64_t size_;
  std::unique_ptr<ZSTD_DCtx_s, FreeContext> context_;  // made once: it has 160 KB
  int64_t loaded_ = -1;                                // number of the frame in bytes_
  std::string packed_;
  std::string bytes_;
};

// Bytes of the log in an archive, from its table alone.
Result<int64_t> ArchiveSize(const std::filesystem::path& path);

// Replaces the segment by its archive, with the same modification time, so that readers always find
// one of them. The segment must not be appended to any more. Returns the archive's bytes. OK, and
// nothing is done, if the archive is there already. Cost: one pass over the segment; memory: a
// frame.
Result<int64_t> CompressLog(const std::filesystem::path& directory, const LogKey& key);

}  // namespace shoal::rendezvous
