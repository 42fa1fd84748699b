// Files by the hash of their content, once on a host, shared by all jobs of a user.
//
//   ROOT/lock                     shared while blobs are used, exclusive while some are removed
//   ROOT/blobs/ab/<sha256>        mode 0444, its time of modification is the stamp below
//   ROOT/tmp/<random>             what is being written; swept when nobody holds the lock
//
// Filled by snapshot.cc where a job is submitted, by what fetches from a coordinator elsewhere, and
// by kept_file.cc; read by place_files.cc. A process that is killed at any point leaves a whole
// blob or none. docs/formats/files.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/id.h"
#include "base/status.h"

namespace shoal::host {

// From this size on, where the file system cannot share blocks (reflink), a file is placed as a
// hard link and cannot be written by the task; smaller ones are copies.
inline constexpr int64_t kLinkFromBytes = 1 << 20;
inline constexpr int64_t kCacheBytes = int64_t{20} << 30;  // the usual bound

// Where this process's user keeps the cache: $SHOAL_CACHE, else `fallback`. And how large it may
// be: $SHOAL_CACHE_LIMIT in bytes, else kCacheBytes.
std::filesystem::path CacheRoot(const std::filesystem::path& fallback);
int64_t CacheLimit();

struct Blob {
  std::string sha256;
  int64_t size = 0;
};

// Several processes may work on one cache. An object is thread-compatible. As long as it lives
// nothing is evicted, so it lives for one shipment, not for ever.
class BlobCache {
 public:
  // Makes the directories, takes the lock (shared) and waits while somebody evicts. `boot_id` names
  // the time since the machine started; empty: the kernel's. What was written before that is hashed
  // again before it is used, for nothing here is synced.
  static Result<BlobCache> Open(const std::filesystem::path& root, std::string_view boot_id = {});
  BlobCache(BlobCache&&) = default;

  // Whether it is there and whole. One that was written to or torn is removed. Counts as a use.
  bool Has(const Blob& blob);
  // Whether there is a file of that name, whole or not. O(1), and no use.
  bool Holds(const std::string& sha256) const;
  // The content of an open file from its beginning; what was stored is what was hashed. O(size),
  // twice if it is new.
  Result<Blob> AddFile(int fd);

  // What this object has added.
  int64_t added_bytes() const { return added_; }

  // Content that comes in pieces. Destroyed before Commit, it leaves nothing.
  class Writer {
   public:
    Writer(Writer&&) = default;
    ~Writer();
    Status Write(std::string_view bytes);
    int64_t size() const { return blob_.size; }

   private:
    friend class BlobCache;
    Writer(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
    std::filesystem::path path_;
    UniqueFd fd_;
    Sha256 hash_;
    Blob blob_;
  };
  Result<Writer> Begin();
  // DataLoss if it is not `expected` (null: whatever it is).
  Result<Blob> Commit(Writer writer, const Blob* expected);

  // The content as the new file `path`: reflink, else copy or hard link (kLinkFromBytes). `path`
  // must not exist and its directory must be the caller's. NotFound if the blob is not there.
  Status Materialize(const Blob& blob, bool executable, const std::filesystem::path& path);
  // For reading, from its beginning. NotFound if it is not there.
  Result<UniqueFd> OpenBlob(const Blob& blob);
  // A hard link (a copy across file systems): the blob is not evicted while it exists.
  Status Pin(const Blob& blob, const std::filesystem::path& path);

  // Evicts what was used longest ago and is not pinned until at most `limit` bytes are left. Gives
  // the lock up: this object can do nothing more. Does nothing while somebody else uses the cache.
  // Bytes that are left.
  static Result<int64_t> Trim(BlobCache cache, int64_t limit);

 private:
  BlobCache(std::filesystem::path root, UniqueFd lock, int64_t stamp)
      : root_(std::move(root)), lock_(std::move(lock)), stamp_(stamp) {}
  std::filesystem::path PathOf(std::string_view sha256) const;
  bool Whole(const std::filesystem::path& path, const Blob& blob) const;

  std::filesystem::path root_;
  UniqueFd lock_;
  int64_t stamp_;  // seconds; the time of modification of whole blobs of this boot
  bool reflink_ = true;
  int64_t added_ = 0;
};

// Calls `on_bytes` for all of the file. O(size).
Status ReadAll(int fd, const std::function<Status(std::string_view)>& on_bytes);

}  // namespace shoal::host
