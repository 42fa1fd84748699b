#include "host/files/materialize_files.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "base/fault_injection.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;
using Kind = ManifestEntry::Kind;

Status MaterializeOne(const ManifestEntry& entry, BlobCache* cache, const fs::path& path) {
  TRY(FaultPoint("files.place"));
  if (entry.kind == Kind::kDirectory) {
    return ::mkdir(path.c_str(), 0755) == 0 ? Status::Ok()
                                            : ErrnoStatus(errno, "cannot make " + path.string());
  }
  if (entry.kind == Kind::kFile)
    return cache->Materialize({entry.sha256, entry.size}, entry.executable, path);
  if (::symlink(entry.target.c_str(), path.c_str()) == 0) return Status::Ok();
  return ErrnoStatus(errno, "cannot make the link " + path.string());
}

}  // namespace

std::vector<Blob> FindMissingBlobs(const Manifest& manifest, BlobCache* cache) {
  std::vector<Blob> missing;
  std::set<std::string_view> seen;
  for (const ManifestEntry& entry : manifest.entries) {
    if (entry.kind != Kind::kFile || !seen.insert(entry.sha256).second) continue;
    const Blob blob{entry.sha256, entry.size};
    if (!cache->Has(blob)) missing.push_back(blob);
  }
  return missing;
}

Status MaterializeFiles(const Manifest& manifest, BlobCache* cache, const fs::path& directory) {
  const fs::path part = directory.string() + ".part";
  std::error_code error;
  fs::remove_all(part, error);
  TRY(MakeDirectories(directory.parent_path(), 0700));
  if (::mkdir(part.c_str(), 0700) != 0) return ErrnoStatus(errno, "cannot make " + part.string());
  for (const bool links : {false, true}) {
    for (const ManifestEntry& entry : manifest.entries) {
      if ((entry.kind == Kind::kLink) == links)
        TRY(MaterializeOne(entry, cache, part / entry.path));
    }
  }
  if (::rename(part.c_str(), directory.c_str()) != 0)
    return ErrnoStatus(errno, "cannot make " + directory.string());
  return Status::Ok();
}

}  // namespace shoal::host
