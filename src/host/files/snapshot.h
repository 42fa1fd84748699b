// What a directory holds now: its manifest, with the content of its files in the cache. Called
// where a job with `files` is submitted (controller).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/files/blob_cache.h"
#include "host/files/manifest.h"

namespace shoal::host {

struct Snapshot {
  Manifest manifest;
  std::vector<std::string>
      left_out;  // without a rule of the user's: .git, __pycache__, virtual environments
};

// Walks `directory`, leaves out what `.shoalignore` files say, version control (.git, .hg, .svn),
// __pycache__, virtual environments (a directory with pyvenv.cfg) and `except` (absolute paths).
// Files are hashed and added to the cache. Errors name the path and say what to do: InvalidArgument
// for links that leave the directory, devices, sockets and pipes, names that cannot be shipped;
// ResourceExhausted beyond the bounds of manifest.h; Aborted for a file that changed each time it
// was read; PermissionDenied. O(bytes).
Result<Snapshot> TakeSnapshot(const std::filesystem::path& directory, BlobCache* cache,
                              const std::vector<std::filesystem::path>& except = {});

}  // namespace shoal::host
