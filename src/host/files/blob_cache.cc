#include "host/files/blob_cache.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "base/fault_injection.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 1 << 20;

// Sets the time of use to now, and that of modification to `stamp` seconds, or leaves it (-1).
void Touch(int fd, int64_t stamp) {
  const timespec times[2] = {{0, UTIME_NOW}, {stamp, stamp < 0 ? UTIME_OMIT : 0}};
  (void)::futimens(fd, times);  // on failure the blob is only hashed again
}

// Equal in all processes of this boot; a time between 1972 and 2004, which no ordinary write
// produces.
int64_t StampOf(std::string_view boot_id) {
  const std::string digest = Sha256Hex(boot_id);
  uint64_t number = 0;
  std::from_chars(digest.data(), digest.data() + 8, number, 16);
  return int64_t{1} << 26 | static_cast<int64_t>(number & ((1 << 30) - 1));
}

Result<std::string> HashOf(int fd) {
  Sha256 hash;
  TRY(ReadAll(fd, [&](std::string_view bytes) {
    hash.Add(bytes);
    return Status::Ok();
  }));
  return hash.Finish();
}

Status CopyTo(int from, int to) {
  return ReadAll(from, [&](std::string_view bytes) { return WriteAll(to, bytes); });
}

// Removes files of killed writers. The lock must be held exclusively.
void SweepTemporary(const fs::path& root) {
  std::error_code ignored;
  for (fs::directory_iterator it(root / "tmp", ignored), end; it != end; it.increment(ignored)) {
    if (ignored) return;
    fs::remove(it->path(), ignored);
  }
}

struct Stored {
  fs::path path;
  int64_t bytes = 0;
  timespec used{};
};

// The blobs that may be evicted; `bytes` receives the total size.
std::vector<Stored> Evictable(const fs::path& root, int64_t* bytes) {
  std::vector<Stored> blobs;
  std::error_code error;
  for (fs::recursive_directory_iterator it(root / "blobs", error), end; !error && it != end;
       it.increment(error)) {
    struct stat info {};
    if (::lstat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    const int64_t size = int64_t{info.st_blocks} * 512;
    *bytes += size;
    if (info.st_nlink == 1) blobs.push_back({it->path(), size, info.st_atim});
  }
  std::sort(blobs.begin(), blobs.end(), [](const Stored& a, const Stored& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec
                                          : a.used.tv_nsec < b.used.tv_nsec;
  });
  return blobs;
}

}  // namespace

fs::path CacheRoot(const fs::path& fallback) {
  const char* set = std::getenv("SHOAL_CACHE");
  return set != nullptr && *set == '/' ? fs::path(set) : fallback;
}

int64_t CacheLimit() {
  const char* set = std::getenv("SHOAL_CACHE_LIMIT");
  if (set == nullptr) return kCacheBytes;
  const std::string_view text(set);
  int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && end == text.data() + text.size() && bytes >= 0 ? bytes
                                                                                : kCacheBytes;
}

Status ReadAll(int fd, const std::function<Status(std::string_view)>& on_bytes) {
  std::vector<char> block(kBlock);
  for (off_t offset = 0;;) {
    const ssize_t got = ::pread(fd, block.data(), block.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read");
    if (got == 0) return Status::Ok();
    TRY(on_bytes({block.data(), static_cast<size_t>(got)}));
    offset += got;
  }
}

Result<BlobCache> BlobCache::Open(const fs::path& root, std::string_view boot_id) {
  std::string boot(boot_id);
  if (boot.empty()) {
    TRY_ASSIGN(boot, ReadFile("/proc/sys/kernel/random/boot_id", 64));
  }
  TRY(MakeDirectories(root / "blobs", 0700));
  TRY(MakeDirectories(root / "tmp", 0700));
  TRY_ASSIGN(UniqueFd lock, OpenFile(root / "lock", O_RDWR | O_CREAT, 0600));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) SweepTemporary(root);
  while (::flock(lock.get(), LOCK_SH) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "cannot lock the cache " + root.string());
  }
  return BlobCache(root, std::move(lock), StampOf(boot));
}

fs::path BlobCache::PathOf(std::string_view sha256) const {
  return root_ / "blobs" / std::string(sha256.substr(0, 2)) / std::string(sha256);
}

bool BlobCache::Whole(const fs::path& path, const Blob& blob) const {
  auto fd = OpenFile(path, O_RDONLY | O_NOFOLLOW);
  struct stat info {};
  if (!fd.ok() || ::fstat(fd->get(), &info) != 0) return false;
  const bool right_size = S_ISREG(info.st_mode) && info.st_size == blob.size;
  if (right_size && info.st_mtim.tv_sec == stamp_ && info.st_mtim.tv_nsec == 0) {
    Touch(fd->get(), -1);
    return true;
  }
  if (!right_size) return false;
  const auto hash = HashOf(fd->get());
  if (!hash.ok() || *hash != blob.sha256) return false;
  Touch(fd->get(), stamp_);
  return true;
}

bool BlobCache::Has(const Blob& blob) {
  const fs::path path = PathOf(blob.sha256);
  if (Whole(path, blob)) return true;
  std::error_code ignored;
  fs::remove(path, ignored);
  return false;
}

bool BlobCache::Holds(const std::string& sha256) const {
  std::error_code ignored;
  return sha256.find('/') == std::string::npos && fs::exists(PathOf(sha256), ignored);
}

Result<Blob> BlobCache::AddFile(int fd) {
  Blob blob;
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "cannot look at the file");
  TRY_ASSIGN(blob.sha256, HashOf(fd));
  blob.size = info.st_size;
  if (Has(blob)) return blob;
  TRY_ASSIGN(Writer writer, Begin());
  TRY(ReadAll(fd, [&](std::string_view bytes) { return writer.Write(bytes); }));
  return Commit(std::move(writer), nullptr);
}

BlobCache::Writer::~Writer() {
  if (fd_.valid()) ::unlink(path_.c_str());
}

Status BlobCache::Writer::Write(std::string_view bytes) {
  TRY(FaultPoint("blob.write"));
  hash_.Add(bytes);
  blob_.size += static_cast<int64_t>(bytes.size());
  return WriteAll(fd_.get(), bytes).With("the cache's " + path_.string());
}

Result<BlobCache::Writer> BlobCache::Begin() {
  const fs::path path = root_ / "tmp" / RandomHex(16);
  TRY_ASSIGN(UniqueFd fd, OpenFile(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0400));
  return Writer(path, std::move(fd));
}

Result<Blob> BlobCache::Commit(Writer writer, const Blob* expected) {
  writer.blob_.sha256 = writer.hash_.Finish();
  const Blob blob = writer.blob_;
  if (expected != nullptr && (expected->sha256 != blob.sha256 || expected->size != blob.size))
    return DataLoss("what came is not the file of hash " + expected->sha256);
  TRY(FaultPoint("blob.commit"));
  if (::fchmod(writer.fd_.get(), 0444) != 0)
    return ErrnoStatus(errno, "cannot protect a file of the cache");
  Touch(writer.fd_.get(), stamp_);
  const fs::path path = PathOf(blob.sha256);
  TRY(MakeDirectories(path.parent_path(), 0700));
  if (::rename(writer.path_.c_str(), path.c_str()) != 0)
    return ErrnoStatus(errno, "cannot store " + path.string());
  writer.fd_.Reset();
  added_ += blob.size;
  return blob;
}

Status BlobCache::Materialize(const Blob& blob, bool executable, const fs::path& path) {
  if (!Has(blob)) return NotFound("the file of hash " + blob.sha256 + " is not in the cache");
  const fs::path from = PathOf(blob.sha256);
  TRY_ASSIGN(const UniqueFd in, OpenFile(from, O_RDONLY | O_NOFOLLOW));
  if (blob.size >= kLinkFromBytes && !executable && !reflink_ &&
      ::link(from.c_str(), path.c_str()) == 0)
    return Status::Ok();
  TRY_ASSIGN(UniqueFd out,
             OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, executable ? 0755 : 0644));
  if (blob.size == 0) return Status::Ok();
  if (reflink_ && ::ioctl(out.get(), FICLONE, in.get()) == 0) return Status::Ok();
  const bool again = std::exchange(reflink_, false);
  if (again && blob.size >= kLinkFromBytes && !executable) {
    ::unlink(path.c_str());
    return Materialize(blob, executable, path);
  }
  return CopyTo(in.get(), out.get()).With(path.string());
}

Result<UniqueFd> BlobCache::OpenBlob(const Blob& blob) {
  if (!Has(blob)) return NotFound("the file of hash " + blob.sha256 + " is not in the cache");
  return OpenFile(PathOf(blob.sha256), O_RDONLY | O_NOFOLLOW);
}

Status BlobCache::Pin(const Blob& blob, const fs::path& path) {
  if (!Has(blob)) return NotFound("the file of hash " + blob.sha256 + " is not in the cache");
  const fs::path from = PathOf(blob.sha256);
  if (::link(from.c_str(), path.c_str()) == 0 || errno == EEXIST) return Status::Ok();
  TRY_ASSIGN(const UniqueFd in, OpenFile(from, O_RDONLY | O_NOFOLLOW));
  TRY_ASSIGN(AtomicFile out, AtomicFile::Create(path, 0444));
  TRY(CopyTo(in.get(), out.fd()).With(path.string()));
  return out.Commit(false);
}

Result<int64_t> BlobCache::Trim(BlobCache cache, int64_t limit) {
  // Not atomic: another process may get the lock in between, and evicts instead.
  if (::flock(cache.lock_.get(), LOCK_EX | LOCK_NB) != 0) return int64_t{-1};
  int64_t bytes = 0;
  const std::vector<Stored> blobs = Evictable(cache.root_, &bytes);
  for (const Stored& blob : blobs) {
    if (bytes <= limit) break;
    if (::unlink(blob.path.c_str()) == 0) bytes -= blob.bytes;
  }
  return bytes;
}

}  // namespace shoal::host
