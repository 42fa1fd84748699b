#include "host/files/cached_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <charconv>
#include <optional>

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 128;
constexpr size_t kHexBytes = 64;
constexpr int64_t kLeftFree = 1 << 30;  // free disk space to keep

Result<struct stat> Look(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "cannot look at the file");
  if (!S_ISREG(info.st_mode)) return InvalidArgument("it is no regular file");
  return info;
}

bool Same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

fs::path NameOf(const fs::path& root, const fs::path& file, const struct stat& info) {
  std::error_code error;
  const fs::path whole = fs::canonical(file, error);
  Sha256 hash;
  hash.Add(fmt::format("{}\n{}\n{}\n{}.{:09}", (error ? file : whole).string(), info.st_ino,
                       info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec));
  return root / "names" / hash.Finish();
}

std::optional<Blob> ReadName(const fs::path& name, int64_t size) {
  const Result<std::string> text = ReadFile(name, kMaxNameBytes);
  if (!text.ok() || text->size() <= kHexBytes + 1 || (*text)[kHexBytes] != ' ') return std::nullopt;
  const std::string sha256 = text->substr(0, kHexBytes);
  if (sha256.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
  int64_t there = -1;
  std::from_chars(text->data() + kHexBytes + 1, text->data() + text->size(), there);
  if (there != size) return std::nullopt;
  return Blob{sha256, size};
}

// Removes index entries whose content was evicted, so that the index does not grow. Entries that
// others are just writing have temporary names and are not touched.
void SweepNames(const fs::path& directory, const BlobCache& cache) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().size() != kHexBytes) continue;
    const Result<std::string> text = ReadFile(it->path(), kMaxNameBytes);
    if (text.ok() && text->size() > kHexBytes && cache.Holds(text->substr(0, kHexBytes))) continue;
    std::error_code ignored;
    fs::remove(it->path(), ignored);
  }
}

Status CheckRoom(const fs::path& root, int64_t bytes) {
  struct statvfs disk {};
  if (::statvfs(root.c_str(), &disk) != 0) return ErrnoStatus(errno, root.string());
  const auto free = static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
  if (free >= bytes + kLeftFree) return Status::Ok();
  return ResourceExhausted(fmt::format("{} has {} bytes free, expected {} and 1 GiB to spare",
                                       root.string(), free, bytes));
}

}  // namespace

Result<CachedFile> CacheFile(const fs::path& file, const fs::path& root, BlobCache* cache) {
  TRY_ASSIGN(const UniqueFd from, OpenFile(file, O_RDONLY));
  TRY_ASSIGN(const struct stat before, Look(from.get()));
  const fs::path name = NameOf(root, file, before);
  CachedFile kept;
  if (const auto known = ReadName(name, before.st_size); known && cache->Has(*known)) {
    TRY_ASSIGN(kept.fd, cache->OpenBlob(*known));
    return kept;
  }
  TRY(CheckRoom(root, before.st_size));
  TRY_ASSIGN(BlobCache::Writer writer, cache->Begin());
  TRY(ReadAll(from.get(), [&](std::string_view bytes) { return writer.Write(bytes); }));
  TRY_ASSIGN(const struct stat after, Look(from.get()));
  if (!Same(before, after) || writer.size() != before.st_size)
    return Aborted("it changed while it was read");
  TRY_ASSIGN(const Blob blob, cache->Commit(std::move(writer), nullptr));
  TRY(MakeDirectories(name.parent_path(), 0700));
  SweepNames(name.parent_path(), *cache);
  TRY(WriteFileAtomically(name, fmt::format("{} {}\n", blob.sha256, blob.size), 0600, false));
  TRY_ASSIGN(kept.fd, cache->OpenBlob(blob));
  kept.fresh = true;
  return kept;
}

bool IsCached(const fs::path& file, const fs::path& root, const BlobCache& cache) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const auto known = ReadName(NameOf(root, file, info), info.st_size);
  return known && cache.Holds(known->sha256);
}

}  // namespace shoal::host
