#include "controller/files/stage_files.h"

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "host/files/blob_cache.h"
#include "host/files/snapshot.h"
#include "job/execution/job_dir.h"

namespace shoal::controller {
namespace {

namespace fs = std::filesystem;

// A file of another user: a link would be this process's file, which that user cannot read.
Status CopyBlob(host::BlobCache* cache, const host::Blob& blob, const fs::path& path,
                const UserIds& owner) {
  TRY_ASSIGN(const UniqueFd from, cache->OpenBlob(blob));
  const FileAccessAs rights(owner);
  std::error_code error;
  if (fs::exists(path, error)) return Status::Ok();
  TRY_ASSIGN(AtomicFile to, AtomicFile::Create(path, 0444));
  TRY(host::ReadAll(from.get(), [&](std::string_view bytes) { return to.Write(bytes); }));
  return to.Commit(false);
}

// Snapshots `directory` into the cache, links its blobs into `files` and writes the manifest last.
Status Fill(const fs::path& directory, const StateHome& home, const fs::path& files,
            const std::optional<UserIds>& owner) {
  TRY_ASSIGN(host::BlobCache cache, host::BlobCache::Open(FileCachePath(home)));
  TRY_ASSIGN(const host::Snapshot snapshot,
             host::TakeSnapshot(directory, &cache, {home.root(), FileCachePath(home)}));
  {
    const FileAccessAs rights(owner);
    TRY(MakeDirectories(job::StagedFilesDir(files).blobs(), 0700));
  }
  for (const host::ManifestEntry& entry : snapshot.manifest.entries) {
    if (entry.kind != host::ManifestEntry::Kind::kFile) continue;
    const fs::path path = job::StagedFilesDir(files).blobs() / entry.sha256;
    TRY(owner ? CopyBlob(&cache, {entry.sha256, entry.size}, path, *owner)
              : cache.Pin({entry.sha256, entry.size}, path));
  }
  const std::string text = host::ToText(snapshot.manifest);
  if (text.size() > host::kMaxManifestBytes)
    return ResourceExhausted(directory.string() +
                             " cannot be staged: its list of files is too long; exclude some in "
                             ".shoalignore");
  {
    const FileAccessAs rights(owner);
    TRY(WriteFileAtomically(job::StagedFilesDir(files).manifest(), text, 0600, false));
  }
  if (cache.added_bytes() == 0) return Status::Ok();
  TRY_ASSIGN(const int64_t left, host::BlobCache::Trim(std::move(cache), host::CacheLimit()));
  (void)left;
  return Status::Ok();
}

}  // namespace

fs::path FileCachePath(const StateHome& home) { return host::CacheRoot(home.root() / "cache"); }

Status StageFiles(const fs::path& directory, const StateHome& home, const fs::path& job_dir) {
  TRY(MakeDirectories(job_dir, 0700));
  const Status filled = Fill(directory, home, job::JobDir(job_dir).files(), ForeignOwner(job_dir));
  if (filled.ok()) return filled;
  (void)RemoveOwnedDirectory(job_dir);
  return filled;
}

}  // namespace shoal::controller
