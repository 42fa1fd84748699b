#include "controller/files/stage_files.h"

#include "base/file.h"
#include "host/files/blob_cache.h"
#include "host/files/snapshot.h"
#include "job/execution/job_dir.h"

namespace shoal::controller {
namespace {

namespace fs = std::filesystem;

// Snapshots `directory` into the cache, links its blobs into `files` and writes the manifest last.
Status Fill(const fs::path& directory, const StateHome& home, const fs::path& files) {
  TRY_ASSIGN(host::BlobCache cache, host::BlobCache::Open(FileCachePath(home)));
  TRY_ASSIGN(const host::Snapshot snapshot,
             host::TakeSnapshot(directory, &cache, {home.root(), FileCachePath(home)}));
  TRY(MakeDirectories(job::StagedFilesDir(files).blobs(), 0700));
  for (const host::ManifestEntry& entry : snapshot.manifest.entries) {
    if (entry.kind != host::ManifestEntry::Kind::kFile) continue;
    TRY(cache.Pin({entry.sha256, entry.size}, job::StagedFilesDir(files).blobs() / entry.sha256));
  }
  const std::string text = host::ToText(snapshot.manifest);
  if (text.size() > host::kMaxManifestBytes)
    return ResourceExhausted(directory.string() +
                             " cannot be staged: its list of files is too long; exclude some in "
                             ".shoalignore");
  TRY(WriteFileAtomically(job::StagedFilesDir(files).manifest(), text, 0600, false));
  if (cache.added_bytes() == 0) return Status::Ok();
  TRY_ASSIGN(const int64_t left, host::BlobCache::Trim(std::move(cache), host::CacheLimit()));
  (void)left;
  return Status::Ok();
}

}  // namespace

fs::path FileCachePath(const StateHome& home) { return host::CacheRoot(home.root() / "cache"); }

Status StageFiles(const fs::path& directory, const StateHome& home, const fs::path& job_dir) {
  TRY(MakeDirectories(job_dir, 0700));
  const Status filled = Fill(directory, home, job::JobDir(job_dir).files());
  if (filled.ok()) return filled;
  std::error_code ignored;
  fs::remove_all(job_dir, ignored);
  return filled;
}

}  // namespace shoal::controller
