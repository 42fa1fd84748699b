// Copies of files on slow storage, such as a network file system, in the host's blob cache
// (blob_cache.h). An index by name, size and modification time records the content's hash, so that
// each version of a file is read from its storage only once:
//
//   ROOT/names/<sha256 of name, size, time>    "SHA256 SIZE\n" of the content
#pragma once

#include <filesystem>

#include "host/files/blob_cache.h"

namespace shoal::host {

// An open cached copy.
struct CachedFile {
  UniqueFd fd;         // the cached copy, for reading; stays valid if the blob is evicted
  bool fresh = false;  // this call read the file from its storage
};

// Opens the cached copy of a file; `cache` is open at `root`. Reads and stores the file if there is
// no copy: O(size), else O(1). On errors nothing is stored: InvalidArgument if it is not a regular
// file; ResourceExhausted if the copy does not fit on the disk; Aborted if the file changed during
// the read; otherwise the system's error.
Result<CachedFile> CacheFile(const std::filesystem::path& file, const std::filesystem::path& root,
                             BlobCache* cache);

// Whether the index contains a copy of the file. O(1): does not read the file.
bool IsCached(const std::filesystem::path& file, const std::filesystem::path& root,
              const BlobCache& cache);

}  // namespace shoal::host
