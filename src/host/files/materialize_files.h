// Creates a staged directory on a host from the blob cache. Called in each task's own process
// (cli/internal/prepare.cc).
#pragma once

#include <filesystem>
#include <vector>

#include "base/status.h"
#include "host/files/blob_cache.h"
#include "host/files/manifest.h"

namespace shoal::host {

// The manifest's contents that are missing in the cache, each once. Damaged blobs are removed.
std::vector<Blob> FindMissingBlobs(const Manifest& manifest, BlobCache* cache);

// Creates `directory`, which must not exist, with the manifest's files from the cache. Links are
// created last, so that no file is written through one. The directory appears under its name when
// it is complete: a killed process leaves `directory`.part, which the next call removes. NotFound
// if a blob is missing. O(number of files), plus bytes where files are copied.
Status MaterializeFiles(const Manifest& manifest, BlobCache* cache,
                        const std::filesystem::path& directory);

}  // namespace shoal::host
