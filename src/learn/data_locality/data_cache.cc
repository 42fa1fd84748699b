#include "learn/data_locality/data_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/log.h"
#include "host/files/cached_file.h"
#include "host/files/network_fs.h"

namespace shoal::learn {
namespace {

namespace fs = std::filesystem;

struct Cache {
  fs::path root;
  host::BlobCache blobs;
};

// Entries in a directory that all users can write might be another user's, with other content.
Status CheckOwner(const fs::path& root) {
  struct stat info {};
  if (::stat(root.c_str(), &info) != 0) return ErrnoStatus(errno, root.string());
  if (info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return Status::Ok();
  return PermissionDenied(root.string() + " is another user's, or others may write there");
}

fs::path CacheDirectory(const DataCacheOptions& options) {
  if (!options.cache.empty()) return options.cache;
  return host::CacheRoot(fmt::format("/var/tmp/shoal-{}", ::geteuid()));
}

Result<Cache> OpenCache(const DataCacheOptions& options) {
  fs::path root = CacheDirectory(options);
  TRY(MakeDirectories(root, 0700));
  TRY(CheckOwner(root));
  if (options.keep == CacheMode::kAuto && host::IsOnNetwork(root))
    return FailedPrecondition(root.string() + " is on a network file system itself");
  TRY_ASSIGN(host::BlobCache blobs, host::BlobCache::Open(root));
  return Cache{std::move(root), std::move(blobs)};
}

// How much of each file these shards read, by index in the corpus. Compressed files are read from
// their beginning, so that everything counts.
std::map<size_t, uint64_t> BytesOf(const data::Corpus& corpus,
                                   const std::vector<data::Shard>& shards) {
  std::map<size_t, uint64_t> bytes;
  for (const data::Shard& shard : shards) {
    for (const data::Segment& segment : shard.segments) {
      const data::SourceFile& file = corpus.files()[segment.file];
      uint64_t& sum = bytes[segment.file];
      if (file.compression != data::Compression::kNone) {
        sum = file.stored_bytes;
      } else {
        sum += std::min(segment.end, file.stored_bytes) - segment.begin;
      }
    }
  }
  return bytes;
}

// True if the file should be cached on this host. Objects are read in place, by ranges.
bool ShouldCache(const DataCacheOptions& options, const data::SourceFile& file, bool remote) {
  if (file.object != nullptr) return false;
  return options.keep == CacheMode::kOn || (options.keep == CacheMode::kAuto && remote);
}

bool IsRemote(const DataCacheOptions& options, const data::SourceFile& file) {
  if (file.object != nullptr) return true;
  return options.on_network ? options.on_network(file.path) : host::IsOnNetwork(file.path);
}

}  // namespace

std::optional<std::vector<CachedPart>> FindCachedParts(const data::Corpus& corpus,
                                                       const data::Division& division,
                                                       const DataCacheOptions& options) {
  std::vector<size_t> wanted;
  for (size_t i = 0; i < corpus.files().size(); ++i) {
    const data::SourceFile& file = corpus.files()[i];
    if (ShouldCache(options, file, IsRemote(options, file))) wanted.push_back(i);
  }
  if (wanted.empty()) return std::nullopt;
  std::error_code error;
  std::vector<CachedPart> held;
  if (!fs::exists(CacheDirectory(options), error)) return held;  // the cache is empty
  const Result<Cache> cache = OpenCache(options);
  if (!cache.ok()) return held;  // CacheShards logs the reason
  std::map<uint64_t, uint64_t> bytes;
  for (const size_t file : wanted) {
    if (!host::IsCached(corpus.files()[file].path, cache->root, cache->blobs)) continue;
    for (const auto& [part, some] : corpus.BytesByPart(file, division)) bytes[part] += some;
  }
  for (const auto& [part, some] : bytes) held.push_back({static_cast<uint32_t>(part), some});
  std::stable_sort(held.begin(), held.end(),
                   [](const CachedPart& a, const CachedPart& b) { return a.bytes > b.bytes; });
  held.resize(std::min(held.size(), kMaxCachedParts));
  return held;
}

CachedCorpus CacheShards(const data::Corpus& corpus, const std::vector<data::Shard>& shards,
                         const DataCacheOptions& options) {
  CachedCorpus near{corpus, {}, {}};
  std::map<size_t, fs::path> places;
  std::optional<Result<Cache>> cache;
  std::error_code error;
  const bool some = fs::exists(CacheDirectory(options), error);
  const auto is_held = [&](const fs::path& file) {
    if (!cache && some) cache.emplace(OpenCache(options));
    return cache && cache->ok() && host::IsCached(file, (*cache)->root, (*cache)->blobs);
  };
  for (const auto& [index, bytes] : BytesOf(corpus, shards)) {
    const data::SourceFile& file = corpus.files()[index];
    const bool remote = IsRemote(options, file);
    uint64_t* from = remote ? &near.bytes.remote : &near.bytes.local;
    if (ShouldCache(options, file, remote) &&
        (bytes >= file.stored_bytes / 2 || is_held(file.path))) {
      if (!cache) cache.emplace(OpenCache(options));
      auto kept = cache->ok() ? host::CacheFile(file.path, (*cache)->root, &(*cache)->blobs)
                              : Result<host::CachedFile>(cache->status());
      if (kept.ok()) {
        from = kept->fresh ? &near.bytes.copied : &near.bytes.kept;
        places[index] = fmt::format("/proc/self/fd/{}", kept->fd.get());
        near.kept.push_back(std::move(kept->fd));
      } else {
        LogWarning("{} is not kept on this host: {}", file.path.string(), kept.status().message());
      }
    }
    *from += bytes;
  }
  near.corpus = corpus.WithCopies(places);
  if (cache && cache->ok()) {
    const auto left = host::BlobCache::Trim(std::move((*cache)->blobs), host::CacheLimit());
    if (!left.ok()) LogWarning("the cache of data: {}", left.status().message());
  }
  return near;
}

Result<CachedCorpus> CacheWorkerPart(const data::Corpus& corpus, const WorkerPart& part,
                                     const DataCacheOptions& options, const Reporter& reporter) {
  std::vector<data::Shard> shards;
  for (uint64_t i = part.part * part.threads; i < (part.part + 1) * part.threads; ++i) {
    TRY_ASSIGN(data::Shard shard,
               corpus.MakeShardWithin(i, {part.workers * part.threads, part.blocks}, 0, 1));
    shards.push_back(std::move(shard));
  }
  CachedCorpus near = CacheShards(corpus, shards, options);
  const BytesRead& bytes = near.bytes;
  LogInfo(
      "data of this worker: part {}, {} bytes on this host's disks, {} in copies here, {} copied "
      "here now, {} over the network",
      part.part, bytes.local, bytes.kept, bytes.copied, bytes.remote);
  if (bytes.kept + bytes.copied + bytes.remote > 0) {
    reporter.Result({{fmt::format("bytes_read_by_worker_{}", part.index),
                      json::object{{"part", part.part},
                                   {"local", bytes.local},
                                   {"kept", bytes.kept},
                                   {"copied", bytes.copied},
                                   {"remote", bytes.remote}}}});
  }
  return near;
}

}  // namespace shoal::learn
