// The data cache: files on a network file system are copied to the worker's host when they are
// first read, and later jobs on that host read the copies (host/files/cached_file.h).
//
// Workers call it before they read. It reports how many bytes of a pass come from where.
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
  CacheMode keep = CacheMode::kAuto;  // kAuto: files on network file systems; kOn: all
  std::filesystem::path cache;        // empty: $SHOAL_CACHE, else /var/tmp/shoal-UID
  std::function<bool(const std::filesystem::path&)> on_network;  // empty: host::IsOnNetwork
};

// The sources of the bytes of one pass over a worker's part; compressed files count as stored.
struct BytesRead {
  uint64_t local = 0;   // from this host's disks
  uint64_t kept = 0;    // from this host's disks, from copies of earlier jobs
  uint64_t copied = 0;  // over the network, into a new copy
  uint64_t remote = 0;  // over the network in every pass
};

// A corpus that reads cached copies, and the open descriptors that keep these from being deleted by
// eviction.
struct CachedCorpus {
  data::Corpus corpus;
  std::vector<UniqueFd> kept;
  BytesRead bytes;
};

// A part of the data and the number of its stored bytes in this host's cache.
struct CachedPart {
  uint32_t part = 0;
  uint64_t bytes = 0;
  bool operator==(const CachedPart&) const = default;
};

// The parts of which this host has bytes in its cache, by descending bytes, at most
// kMaxCachedParts. nullopt if no file would be cached. Checks names only; reads no data.
inline constexpr size_t kMaxCachedParts = 64;
std::optional<std::vector<CachedPart>> FindCachedParts(const data::Corpus& corpus,
                                                       const data::Division& division,
                                                       const DataCacheOptions& options);

// Replaces the files of a corpus by cached copies, creating missing copies of files of which
// `shards` read at least half. Files that cannot be cached (no space, a cache on the network or of
// another user) are read in place; the log gives the reason. O(size of the copied files).
CachedCorpus CacheShards(const data::Corpus& corpus, const std::vector<data::Shard>& shards,
                         const DataCacheOptions& options);

// CacheShards for worker `index`, which reads part `part` of `workers` parts with `threads`
// threads. Logs what was done, and reports it in the job's result if files are on the network.
// Errors as Corpus::MakeShard.
struct WorkerPart {
  uint64_t index = 0;
  uint64_t part = 0;
  uint64_t threads = 1;
  uint64_t workers = 1;
  uint64_t blocks = 1;  // data::Division
};
Result<CachedCorpus> CacheWorkerPart(const data::Corpus& corpus, const WorkerPart& part,
                                     const DataCacheOptions& options, const Reporter& reporter);

}  // namespace shoal::learn
