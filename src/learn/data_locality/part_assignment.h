// Which part of the data each worker takes: those of its host's copies where it can be (near.h), so
// that a job that runs again on the same hosts finds its bytes there, whatever its workers are
// called now. The data is cut into as many parts as there are workers; only who takes which moves.
//
// Called by workers before they read. Through named blobs on the servers, "near/WORKER" (what a
// host holds) and "parts" (what the first worker decides), which are in every checkpoint.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "learn/coordination/shared_blobs.h"
#include "learn/data_locality/data_cache.h"
#include "ps/client/client.h"

namespace shoal::learn {

// What the others wait for at most; the first worker waits a part of it for what they hold.
inline constexpr Duration kPartsTimeout = std::chrono::minutes(10);
inline constexpr Duration kCachedPartsTimeout = std::chrono::seconds(15);

struct PartRequest {
  int index = 0;
  int workers = 1;
  // Every worker keeps the part of its own number: where the result depends on who trains what.
  bool fixed = false;
  const DataCacheOptions* data_cache = nullptr;  // not owned, as all below
  ps::Client* client = nullptr;
  SharedBlobs* shared_blobs = nullptr;
  const std::atomic<bool>* stop = nullptr;
  std::function<std::vector<int>()> ended = {};  // workers that have, as far as is known; or empty
  Duration cached_parts_timeout = kCachedPartsTimeout;
};

struct PartAssignment {
  uint64_t own = 0;  // this worker's, of as many as there are workers
  std::string told;  // as the servers have it for workers that come again; empty: nobody moved

  // Another worker's.
  uint64_t Of(int worker) const;
};

// Asks the servers, and as the first worker decides. The same answer in every life of a worker.
// Cancelled if *stop became true meanwhile; DeadlineExceeded if the first worker says nothing.
Result<PartAssignment> AgreeOnParts(const PartRequest& ask, const data::Corpus& corpus);

// The part of each worker: the most bytes first, then each its own number where that is free.
// `held`: by worker. Every part once. O(n log n) in what is held.
std::vector<uint32_t> AssignParts(const std::vector<std::vector<CachedPart>>& held);

}  // namespace shoal::learn
