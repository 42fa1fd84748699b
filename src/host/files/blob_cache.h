// Content-addressed file cache of a host, shared by all jobs of a user.
//
//   ROOT/lock                     shared while blobs are used, exclusive while some are removed
//   ROOT/blobs/ab/<sha256>        mode 0444, its time of modification is the stamp below
//   ROOT/tmp/<random>             files being written; removed when the lock is free
//
// Filled by snapshot.cc where a job is submitted, by downloads from a coordinator on another host,
// and by cached_file.cc; read by materialize_files.cc. A process that is killed at any point leaves
// a complete blob or none. docs/formats/files.md.
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

// On file systems without reflink, files of at least this size are materialized as hard links,
// which the task cannot write; smaller ones as copies.
inline constexpr int64_t kLinkFromBytes = 1 << 20;
inline constexpr int64_t kCacheBytes = int64_t{20} << 30;  // default limit

// The cache's directory: $SHOAL_CACHE, else `fallback`. Its size limit: $SHOAL_CACHE_LIMIT in
// bytes, else kCacheBytes.
std::filesystem::path CacheRoot(const std::filesystem::path& fallback);
int64_t CacheLimit();

// Identifies a content.
struct Blob {
  std::string sha256;
  int64_t size = 0;
};

// Several processes may use one cache. An object is thread-compatible. While it exists nothing is
// evicted, so keep it only for one transfer.
class BlobCache {
 public:
  // Creates the directories and takes the shared lock; waits during an eviction. `boot_id`
  // identifies the current boot; empty: the kernel's. Blobs from earlier boots are hashed again
  // before use, because writes are not synced.
  static Result<BlobCache> Open(const std::filesystem::path& root, std::string_view boot_id = {});
  BlobCache(BlobCache&&) = default;

  // Whether the blob exists and is complete. Modified or truncated blobs are removed. Counts as
  // use.
  bool Has(const Blob& blob);
  // Whether a file of that name exists, complete or not. O(1); does not count as use.
  bool Holds(const std::string& sha256) const;
  // Adds the content of an open file from its beginning. The stored bytes are those that were
  // hashed. O(size); reads the file twice if it is new.
  Result<Blob> AddFile(int fd);

  // Bytes that this object has added.
  int64_t added_bytes() const { return added_; }

  // Receives content in pieces. Leaves nothing if destroyed before Commit.
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
  // DataLoss if the content is not `expected` (null: accept any).
  Result<Blob> Commit(Writer writer, const Blob* expected);

  // Creates the file `path` with the blob's content by reflink, else by copy or hard link
  // (kLinkFromBytes). `path` must not exist; the caller owns its directory. NotFound if the blob
  // does not exist.
  Status Materialize(const Blob& blob, bool executable, const std::filesystem::path& path);
  // Opens a blob for reading. NotFound if it does not exist.
  Result<UniqueFd> OpenBlob(const Blob& blob);
  // Creates a hard link to the blob (a copy across file systems). The blob is not evicted while the
  // link exists.
  Status Pin(const Blob& blob, const std::filesystem::path& path);

  // Evicts the least recently used blobs that are not pinned until at most `limit` bytes are left.
  // Consumes the object. Does nothing while another process uses the cache. Returns the remaining
  // bytes.
  static Result<int64_t> Trim(BlobCache cache, int64_t limit);

 private:
  BlobCache(std::filesystem::path root, UniqueFd lock, int64_t stamp)
      : root_(std::move(root)), lock_(std::move(lock)), stamp_(stamp) {}
  std::filesystem::path PathOf(std::string_view sha256) const;
  bool Whole(const std::filesystem::path& path, const Blob& blob) const;

  std::filesystem::path root_;
  UniqueFd lock_;
  int64_t stamp_;  // seconds; modification time of complete blobs of this boot
  bool reflink_ = true;
  int64_t added_ = 0;
};

// Calls `on_bytes` for the file's whole content. O(size).
Status ReadAll(int fd, const std::function<Status(std::string_view)>& on_bytes);

}  // namespace shoal::host
