// Files and descriptors: owned descriptors, bounded reads, and writes that leave either the old
// file or the new one.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace shoal {

// Owns one file descriptor; closes it. -1 means none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

// Opens with O_CLOEXEC. The error names the path.
Result<UniqueFd> OpenFile(const std::filesystem::path& path, int flags, unsigned mode = 0644);

// The whole file; ResourceExhausted if it is longer than `limit` bytes.
Result<std::string> ReadFile(const std::filesystem::path& path, size_t limit);

// All of `bytes` to `fd`, through short writes and EINTR.
Status WriteAll(int fd, std::string_view bytes);
// Likewise at an offset.
Status WriteAllAt(int fd, std::string_view bytes, int64_t offset);

// A file that appears whole or not at all: written under a temporary name in the same directory,
// synced, renamed, the directory synced. Destroyed before Commit, it removes what it wrote and the
// old file stays as it was. Not thread-safe.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::filesystem::path& path, unsigned mode = 0644);
  AtomicFile(AtomicFile&&) = default;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  int fd() const { return fd_.get(); }
  Status Write(std::string_view bytes) { return WriteAll(fd_.get(), bytes).With(path_.string()); }
  // Makes it visible. `durable` false skips both syncs (for what a crash may lose).
  Status Commit(bool durable = true);

 private:
  AtomicFile(std::filesystem::path path, std::filesystem::path aside, UniqueFd fd)
      : path_(std::move(path)), aside_(std::move(aside)), fd_(std::move(fd)) {}
  std::filesystem::path path_;
  std::filesystem::path aside_;  // empty once committed
  UniqueFd fd_;
};

// AtomicFile with all its content at once.
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes,
                           unsigned mode = 0644, bool durable = true);

Status SyncDirectory(const std::filesystem::path& directory);
// mkdir -p with the given mode for what it makes.
Status MakeDirectories(const std::filesystem::path& directory, unsigned mode = 0755);

// A directory of its own below $TMPDIR (or /tmp), mode 0700, removed with everything in it.
class TempDir {
 public:
  static Result<TempDir> Create(std::string_view prefix = "shoal");
  TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempDir& operator=(TempDir&&) = delete;
  ~TempDir();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TempDir(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace shoal
