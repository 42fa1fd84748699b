// A host's side of shipping a job's directory: fetches from the job's coordinator what the host's
// cache has not, each content checked against its hash. Used by cli/internal/prepare.cc, in a
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
  // Since the start, or since the connection was lost; what had not come whole is asked for again.
  Duration give_up_after = std::chrono::seconds(30);
};

// Both block, on a loop of their own. Errors: what CoordinatorConnection says when it gives up,
// NotFound for what the coordinator has not, DataLoss for content that is not what was asked for,
// ResourceExhausted for more than was asked for.

// The text of the manifest (host/files/manifest.h).
Result<std::string> FetchManifest(const FetchOptions& options);
// Adds the blobs to the cache.
Status FetchBlobs(const FetchOptions& options, const std::vector<host::Blob>& blobs,
                  host::BlobCache* cache);

}  // namespace shoal::rendezvous
