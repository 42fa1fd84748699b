// What a worker reads, near it: files on a network file system are copied to the worker's host when
// they are read first, and found there by the next job that reads them (host/kept_file.h).
//
// Called by workers before they read; says how many bytes of a pass come from where.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/shard.h"
#include "learn/reporter.h"

namespace shoal::learn {

// learn.cache_data.
enum class CacheData : uint8_t { kAuto, kOn, kOff };

struct NearOptions {
  CacheData keep = CacheData::kAuto;  // auto: files on a network file system, on: all
  std::filesystem::path cache;        // empty: $SHOAL_CACHE, else /var/tmp/shoal-UID
  std::function<bool(const std::filesystem::path&)> on_network;  // empty: host::IsOnNetwork
};

// Of one pass over a worker's part; of compressed files as they lie on the disk.
struct BytesRead {
  uint64_t local = 0;   // from this host's disks
  uint64_t kept = 0;    // likewise, from copies that an earlier job had made
  uint64_t copied = 0;  // over the network, once: now there is a copy
  uint64_t remote = 0;  // over the network each time
};

// A corpus whose files are the near ones, and what keeps these there.
struct NearCorpus {
  data::Corpus corpus;
  std::vector<UniqueFd> kept;
  BytesRead bytes;
};

// A file is kept if these shards read half of it or more. What cannot be kept (no room, a cache on
// the network itself or of somebody else) is read from where it lies, and the log says why.
NearCorpus BringNear(const data::Corpus& corpus, const std::vector<data::Shard>& shards,
                     const NearOptions& options);

// The parts [first, end) of `count`, for worker `index`: as BringNear, tells the log what was done,
// and the job's result if something is on the network. Errors as Corpus::Cut.
Result<NearCorpus> BringPartNear(const data::Corpus& corpus, uint64_t index, uint64_t threads,
                                 uint64_t workers, const NearOptions& options,
                                 const Reporter& reporter);

}  // namespace shoal::learn
