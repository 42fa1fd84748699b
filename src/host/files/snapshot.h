// Takes a snapshot of a directory: a manifest, and the contents of its files in the blob cache.
// Called by the controller when a job with `files` is submitted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/files/blob_cache.h"
#include "host/files/manifest.h"

namespace shoal::host {

// Result of TakeSnapshot.
struct Snapshot {
  Manifest manifest;
  std::vector<std::string>
      left_out;  // excluded by default: .git, __pycache__, virtual environments
};

// Walks `directory`; excludes files by `.shoalignore` rules, version control (.git, .hg, .svn),
// __pycache__, virtual environments (a directory with pyvenv.cfg) and `except` (absolute paths).
// Files are hashed and added to the cache. Errors name the path and say what to do: InvalidArgument
// for links that leave the directory, devices, sockets and pipes, names that cannot be shipped;
// ResourceExhausted beyond the bounds of manifest.h; Aborted for a file that changed each time it
// was read; PermissionDenied. O(bytes).
Result<Snapshot> TakeSnapshot(const std::filesystem::path& directory, BlobCache* cache,
                              const std::vector<std::filesystem::path>& except = {});

}  // namespace shoal::host
