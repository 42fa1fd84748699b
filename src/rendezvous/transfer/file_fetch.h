// A host's side of staging a job's directory: fetches the files that the host's cache lacks from
// the job's coordinator and checks each against its hash. Used by launcher/stage_files.cc in a
// task's own process.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "host/files/blob_cache.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::rendezvous {

struct FetchOptions {
  // Asked before every dial.
  std::function<Result<CoordinatorAddress>()> find;
  std::string token;
  // Since the start, or since the connection was lost. Incomplete files are then requested again.
  Duration give_up_after = std::chrono::seconds(30);
};

// Both block, on a loop of their own. Errors: those of CoordinatorConnection when it gives up,
// NotFound for what the coordinator lacks, DataLoss for content that differs from its hash,
// ResourceExhausted for more bytes than were requested.

// The text of the manifest (host/files/manifest.h).
Result<std::string> FetchManifest(const FetchOptions& options);
// Adds the blobs to the cache.
Status FetchBlobs(const FetchOptions& options, const std::vector<host::Blob>& blobs,
                  host::BlobCache* cache);

}  // namespace shoal::rendezvous
