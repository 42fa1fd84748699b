#include "rendezvous/transfer/stage_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/id.h"
#include "host/files/blob_cache.h"
#include "host/files/materialize_files.h"
#include "host/files/python_env.h"
#include "job/execution/job_dir.h"
#include "rendezvous/protocol/coordinator_connection.h"
#include "rendezvous/transfer/file_fetch.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;

Result<UniqueFd> LockFile(const fs::path& path) {
  TRY(MakeDirectories(path.parent_path(), 0700));
  TRY_ASSIGN(UniqueFd lock, OpenFile(path, O_RDWR | O_CREAT, 0600));
  while (::flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "cannot lock " + path.string());
  }
  return lock;
}

Result<FetchOptions> Source(const StageFilesOptions& options) {
  FetchOptions fetch;
  TRY_ASSIGN(fetch.token, ReadTokenFile(options.job_dir));
  fetch.find = [dir = options.job_dir] { return ReadCoordinatorFile(dir); };
  return fetch;
}

Result<std::string> ManifestText(const StageFilesOptions& options) {
  auto here = ReadFile(job::StagedFilesDir(job::JobDir(options.job_dir).files()).manifest(),
                       host::kMaxManifestBytes);
  if (here.ok() || here.status().code() != Code::kNotFound) return here;
  TRY_ASSIGN(const FetchOptions source, Source(options));
  return FetchManifest(source);
}

// Once per host: the second process finds in the cache what the first has fetched.
Status FetchMissing(const StageFilesOptions& options, const host::Manifest& manifest,
                    host::BlobCache* cache) {
  if (host::FindMissingBlobs(manifest, cache).empty()) return Status::Ok();
  TRY_ASSIGN(const UniqueFd lock, LockFile(options.cache / "fetch.lock"));
  const std::vector<host::Blob> missing = host::FindMissingBlobs(manifest, cache);
  if (missing.empty()) return Status::Ok();
  TRY_ASSIGN(const FetchOptions source, Source(options));
  return FetchBlobs(source, missing, cache).With("the job's files cannot be fetched");
}

Status MakeDirectory(const StageFilesOptions& options, const host::Manifest& manifest,
                     const fs::path& directory) {
  TRY_ASSIGN(host::BlobCache cache, host::BlobCache::Open(options.cache));
  TRY(FetchMissing(options, manifest, &cache));
  TRY(host::MaterializeFiles(manifest, &cache, directory));
  if (cache.added_bytes() == 0) return Status::Ok();
  TRY_ASSIGN(const int64_t left, host::BlobCache::Trim(std::move(cache), host::CacheLimit()));
  (void)left;
  return Status::Ok();
}

Status MakeEnv(const StageFilesOptions& options, const std::string& manifest,
               StagedFiles* prepared) {
  host::PythonEnvSpec spec;
  spec.requirements = prepared->work_dir / "requirements.txt";
  if (::access(spec.requirements.c_str(), F_OK) != 0) return Status::Ok();
  spec.cache = options.cache;
  spec.files_digest = Sha256Hex(manifest);
  spec.builder = options.builder;
  TRY_ASSIGN(host::PythonEnv env, host::MakePythonEnv(spec));
  if (env.built) TRY(host::TrimPythonEnvs(options.cache, host::CacheLimit()));
  prepared->env = env.directory;
  const int lock = env.lock.Release();
  return ::fcntl(lock, F_SETFD, 0) == 0 ? Status::Ok()
                                        : ErrnoStatus(errno, "the lock of the virtual environment");
}

}  // namespace

Result<StagedFiles> StageFiles(const StageFilesOptions& options) {
  const fs::path marker = options.scratch / "files.prepared";
  StagedFiles prepared;
  prepared.work_dir = options.scratch / "files";
  if (options.only_if_staged && ::access(marker.c_str(), F_OK) != 0)
    return Unavailable("the job's files are still being prepared");
  TRY_ASSIGN(const UniqueFd lock, LockFile(options.scratch / "files.lock"));
  TRY_ASSIGN(const std::string text, ManifestText(options));
  if (::access(prepared.work_dir.c_str(), F_OK) != 0) {
    auto manifest = host::ParseManifest(text);
    if (!manifest.ok()) return manifest.status().With("the list of the job's files");
    TRY(MakeDirectory(options, *manifest, prepared.work_dir));
  }
  TRY(MakeEnv(options, text, &prepared));
  TRY(WriteFileAtomically(marker, "", 0600, false));
  return prepared;
}

}  // namespace shoal::rendezvous
