// Files of slow places, such as a network file system, kept in the cache of their host by the hash
// of their content (blob_cache.h). Which content a file had is remembered by its name, size and
// time of modification, so that it is read from where it lies only once:
//
//   ROOT/names/<sha256 of those>    "SHA256 SIZE\n" of the content
#pragma once

#include <filesystem>

#include "host/files/blob_cache.h"

namespace shoal::host {

struct CachedFile {
  UniqueFd fd;         // of the kept copy, for reading; it stays whole also if it is evicted
  bool fresh = false;  // it was read from where it lies, just now
};

// `cache` is open at `root`. Reads the file if its copy is not there: O(size), else O(1). Errors:
// InvalidArgument if it is no regular file; ResourceExhausted if the copy would not fit the disk;
// Aborted if the file changed while it was read; otherwise the system's. Then nothing is kept.
Result<CachedFile> CacheFile(const std::filesystem::path& file, const std::filesystem::path& root,
                             BlobCache* cache);

// Whether CacheFile would find a copy, as far as names tell. O(1): nothing of the file is read.
bool IsCached(const std::filesystem::path& file, const std::filesystem::path& root,
              const BlobCache& cache);

}  // namespace shoal::host
