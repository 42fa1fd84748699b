// Assigns the parts of the data to workers, preferably those in the cache of their host
// (data_cache.h), so that a job that runs again on the same hosts reads local copies, whatever its
// workers' numbers are. There are as many parts as workers; only their assignment changes.
//
// Workers call it before they read. It uses two kinds of named blobs on the servers: "near/WORKER"
// (the parts in the cache of the worker's host) and "parts" (the first worker's decision), which
// are part of every checkpoint.
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

// Timeouts: of a worker for the decision, and of the first worker for the cached parts of the
// others.
inline constexpr Duration kPartsTimeout = std::chrono::minutes(10);
inline constexpr Duration kCachedPartsTimeout = std::chrono::seconds(15);

// What AgreeOnParts needs of a worker. Pointers are not owned.
struct PartRequest {
  int index = 0;
  int workers = 1;
  uint64_t blocks = 1;  // data::Division
  // Every worker takes the part of its own number: for jobs whose result depends on the assignment.
  bool fixed = false;
  const DataCacheOptions* data_cache = nullptr;  // not owned, as all below
  ps::Client* client = nullptr;
  SharedBlobs* shared_blobs = nullptr;
  const std::atomic<bool>* stop = nullptr;
  std::function<std::vector<int>()> ended = {};  // workers that have ended; may be empty
  Duration cached_parts_timeout = kCachedPartsTimeout;
};

// The result: which part each worker reads.
struct PartAssignment {
  uint64_t own = 0;  // this worker's part
  std::string told;  // the blob, for restarted workers; empty: part = worker

  // The part of another worker.
  uint64_t Of(int worker) const;
};

// Reads the decision from the servers, or makes it as the first worker. Restarted workers get the
// same answer. Cancelled if *stop becomes true; DeadlineExceeded if the first worker does not
// answer.
Result<PartAssignment> AgreeOnParts(const PartRequest& ask, const data::Corpus& corpus);

// Assigns every part to one worker: those with the most cached bytes first, then each remaining
// worker its own number if that is free. `held`: cached parts by worker. O(n log n) in their
// number.
std::vector<uint32_t> AssignParts(const std::vector<std::vector<CachedPart>>& held);

}  // namespace shoal::learn
