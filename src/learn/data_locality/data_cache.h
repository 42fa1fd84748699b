// What a worker reads, near it: files on a network file system are copied to the worker's host when
// they are read first, and found there by the next job that reads them (host/files/cached_file.h).
//
// Called by workers before they read; says how many bytes of a pass come from where.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/corpus/corpus.h"
#include "learn/coordination/reporter.h"

namespace shoal::learn {

// learn.cache_data.
enum class CacheMode : uint8_t { kAuto, kOn, kOff };

struct DataCacheOptions {
  CacheMode keep = CacheMode::kAuto;  // auto: files on a network file system, on: all
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
struct CachedCorpus {
  data::Corpus corpus;
  std::vector<UniqueFd> kept;
  BytesRead bytes;
};

// A part of the data, and how many of its stored bytes this host has in copies.
struct CachedPart {
  uint32_t part = 0;
  uint64_t bytes = 0;
  bool operator==(const CachedPart&) const = default;
};

// Of `count` parts those that this host holds something of, most first, at most kMaxCachedParts;
// nothing at all where no file would be kept. Looks at names: nothing of the data is read.
inline constexpr size_t kMaxCachedParts = 64;
std::optional<std::vector<CachedPart>> FindCachedParts(const data::Corpus& corpus, uint64_t count,
                                                       const DataCacheOptions& options);

// A file is kept if these shards read half of it or more, and read from its copy if there is one.
// What cannot be kept (no room, a cache on the network itself or of somebody else) is read from
// where it lies, and the log says why.
CachedCorpus CacheShards(const data::Corpus& corpus, const std::vector<data::Shard>& shards,
                         const DataCacheOptions& options);

// Part `part` of as many as there are workers, for worker `index`, whose threads cut it further: as
// CacheShards, tells the log what was done, and the job's result if something is on the network.
// Errors as Corpus::MakeShard.
struct WorkerPart {
  uint64_t index = 0;
  uint64_t part = 0;
  uint64_t threads = 1;
  uint64_t workers = 1;
};
Result<CachedCorpus> CacheWorkerPart(const data::Corpus& corpus, const WorkerPart& part,
                                     const DataCacheOptions& options, const Reporter& reporter);

}  // namespace shoal::learn
