#include "api/server/uploads.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/id.h"
#include "host/files/blob_cache.h"
#include "host/files/materialize_files.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCache = "cache";
constexpr const char* kParts = "parts";
constexpr const char* kTrees = "trees";
constexpr unsigned kPrivate = 0700;
constexpr std::chrono::hours kPartLife{24};

Status CheckDigest(const std::string& sha256) {
  constexpr size_t kDigits = 64;
  const bool hex = std::ranges::all_of(
      sha256, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (hex && sha256.size() == kDigits) return Status::Ok();
  return InvalidArgument("got the digest " + sha256.substr(0, kDigits) +
                         ", expected SHA-256 in 64 lower-case hex digits");
}

int64_t SizeOf(const fs::path& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 ? info.st_size : 0;
}

int64_t BytesIn(const fs::path& directory) {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) bytes += SizeOf(entry.path());
  return bytes;
}

// Opens the part and locks it against other uploads of the same content.
Result<UniqueFd> OpenPart(const fs::path& parts, const std::string& sha256) {
  TRY(MakeDirectories(parts, kPrivate));
  TRY_ASSIGN(UniqueFd fd, OpenFile(parts / sha256, O_RDWR | O_CREAT, 0600));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return Unavailable("another request uploads this content; try again");
  return fd;
}

}  // namespace

void Uploads::CleanUp() {
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& team : fs::directory_iterator(root_, error)) {
    fs::remove_all(team.path() / kTrees, error);
    for (const auto& part : fs::directory_iterator(team.path() / kParts, error)) {
      std::error_code unreadable;
      const auto changed = fs::last_write_time(part.path(), unreadable);
      if (!unreadable && now - changed > kPartLife) fs::remove(part.path(), unreadable);
    }
  }
}

Result<std::vector<UploadStatus>> Uploads::FindMissing(const std::string& team,
                                                       const std::vector<std::string>& digests) {
  TRY(MakeDirectories(TeamRoot(team), kPrivate));
  TRY_ASSIGN(const host::BlobCache cache, host::BlobCache::Open(TeamRoot(team) / kCache));
  std::vector<UploadStatus> missing;
  for (const std::string& sha256 : digests) {
    TRY(CheckDigest(sha256));
    if (!cache.Holds(sha256))
      missing.push_back({sha256, SizeOf(TeamRoot(team) / kParts / sha256), false});
  }
  return missing;
}

Result<UploadStatus> Uploads::Find(const std::string& team, const std::string& sha256) {
  TRY_ASSIGN(const std::vector<UploadStatus> missing, FindMissing(team, {sha256}));
  return missing.empty() ? UploadStatus{sha256, 0, true} : missing.front();
}

Result<UploadStatus> Uploads::Append(const std::string& team, const std::string& sha256,
                                     const UploadPiece& piece) {
  TRY_ASSIGN(const UploadStatus now, Find(team, sha256));
  if (now.complete) return now;
  const auto size = static_cast<int64_t>(piece.bytes.size());
  if (piece.size > host::kMaxShippedBytes)
    return ResourceExhausted("a file of " + std::to_string(piece.size) +
                             " bytes is too large, expected at most " +
                             std::to_string(host::kMaxShippedBytes));
  if (piece.offset + size > piece.size)
    return InvalidArgument("the piece ends behind the size of the file");
  const fs::path parts = TeamRoot(team) / kParts;
  TRY_ASSIGN(const UniqueFd fd, OpenPart(parts, sha256));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "an upload");
  if (info.st_size != piece.offset)
    return FailedPrecondition("the piece begins at byte " + std::to_string(piece.offset) +
                              ", and " + std::to_string(info.st_size) + " bytes have arrived");
  if (BytesIn(parts) + size > limit_)
    return ResourceExhausted("the unfinished uploads of the team " + team + " exceed " +
                             std::to_string(limit_) + " bytes; finish them, or wait a day");
  const Status written = WriteAllAt(fd.get(), piece.bytes, piece.offset);
  if (!written.ok()) {
    (void)::ftruncate(fd.get(), piece.offset);
    return written.With("the server cannot store the upload");
  }
  if (piece.offset + size < piece.size) return UploadStatus{sha256, piece.offset + size, false};
  return Complete(team, sha256, fd.get(), piece.size);
}

Result<UploadStatus> Uploads::Complete(const std::string& team, const std::string& sha256, int fd,
                                       int64_t size) {
  const fs::path part = TeamRoot(team) / kParts / sha256;
  TRY_ASSIGN(host::BlobCache cache, host::BlobCache::Open(TeamRoot(team) / kCache));
  TRY_ASSIGN(host::BlobCache::Writer writer, cache.Begin());
  TRY(host::ReadAll(fd, [&](std::string_view bytes) { return writer.Write(bytes); }));
  const host::Blob expected{sha256, size};
  const Result<host::Blob> stored = cache.Commit(std::move(writer), &expected);
  std::error_code error;
  if (!stored.ok() && stored.status().code() == Code::kDataLoss) {
    fs::remove(part, error);
    return InvalidArgument("the uploaded bytes do not have the digest " + sha256 +
                           "; upload them again from the beginning");
  }
  TRY(stored.status());
  fs::remove(part, error);
  return UploadStatus{sha256, size, true};
}

Result<fs::path> Uploads::MakeTree(const std::string& team, const host::Manifest& manifest) {
  TRY(MakeDirectories(TeamRoot(team) / kTrees, kPrivate));
  const fs::path tree = TeamRoot(team) / kTrees / RandomHex(8);
  TRY_ASSIGN(host::BlobCache cache, host::BlobCache::Open(TeamRoot(team) / kCache));
  const std::vector<host::Blob> missing = host::FindMissingBlobs(manifest, &cache);
  if (!missing.empty())
    return FailedPrecondition(std::to_string(missing.size()) +
                              " of the files are not uploaded, the first one is " +
                              missing.front().sha256 + "; upload them and submit again");
  const Status made = host::MaterializeFiles(manifest, &cache, tree);
  std::error_code error;
  if (!made.ok()) fs::remove_all(tree, error);
  TRY(made);
  TRY_ASSIGN(const int64_t left, host::BlobCache::Trim(std::move(cache), limit_));
  (void)left;
  return tree;
}

}  // namespace shoal::api
