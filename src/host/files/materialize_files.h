// A shipped directory comes into being on a host. Called in each task's own process
// (cli/internal/prepare.cc).
#pragma once

#include <filesystem>
#include <vector>

#include "base/status.h"
#include "host/files/blob_cache.h"
#include "host/files/manifest.h"

namespace shoal::host {

// Of the manifest's files, each content once: what the cache has not. Files that were damaged are
// removed.
std::vector<Blob> FindMissingBlobs(const Manifest& manifest, BlobCache* cache);

// Makes `directory`, which must not exist, as the manifest says, out of the cache; links last, so
// that nothing is written through one. It appears under its name when it is whole: a killed process
// leaves `directory`.part, which the next one removes. NotFound if something is missing. O(number
// of files), and bytes where they are copied.
Status MaterializeFiles(const Manifest& manifest, BlobCache* cache,
                        const std::filesystem::path& directory);

}  // namespace shoal::host
