#include "data/corpus/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "data/objects/object_stores.h"
#include "data/text/sequence_digest.h"

namespace shoal::data {
namespace {

// A boundary between two shards, and the weight of all text before it.
struct ShardBorder {
  ShardBoundary place;
  uint64_t weight = 0;
};

struct BorderRange {
  ShardBorder from, to;
  uint64_t weight() const { return to.weight - from.weight; }
};

// Where a shard of several ranges begins or ends.
struct RangeBorder {
  size_t range = 0;
  ShardBoundary place;
};

uint64_t WeightOf(const SourceFile& file) {
  return file.stored_bytes * (file.compression == Compression::kNone ? 1 : kCompressedWeight);
}

// floor(a · b / c) without overflow; b ≤ c, c > 0.
uint64_t Scale(uint64_t a, uint64_t b, uint64_t c) {
  return static_cast<uint64_t>(static_cast<Wide>(a) * b / c);
}

uint64_t Mix(uint64_t state, uint64_t value) {
  const Wide product = static_cast<Wide>(state ^ 0x9e37'79b9'7f4a'7c15) * (value | 1);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ value;
}

// Opens objects, several at once: each costs a few requests. In the order of `uris`.
Result<std::vector<SourceFile>> InspectObjects(const std::vector<std::string>& uris,
                                               Content content, ObjectStores* stores) {
  constexpr size_t kThreads = 8;
  std::vector<Result<SourceFile>> results(uris.size(), Internal("not inspected"));
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  const auto inspect = [&](size_t i) -> Result<SourceFile> {
    TRY_ASSIGN(auto object, stores->Open(uris[i]));
    return InspectObject(std::move(object), content);
  };
  const auto work = [&] {
    for (size_t i = next++; i < uris.size() && !failed; i = next++) {
      results[i] = inspect(i);
      if (!results[i].ok()) failed = true;
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(kThreads, uris.size()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::vector<SourceFile> files;
  for (Result<SourceFile>& result : results) {
    if (!result.ok() && result.status().code() == Code::kInternal) continue;  // of no interest now
    TRY_ASSIGN(files.emplace_back(), std::move(result));
  }
  return files;
}

// All files that the paths and URIs name, in order.
Result<std::vector<SourceFile>> InspectAll(const std::vector<std::string>& paths,
                                           ObjectContext context, Content content) {
  std::optional<ObjectStores> stores;
  std::vector<SourceFile> files;
  for (const std::string& name : paths) {
    if (!IsRemoteUri(name)) {
      std::string_view path = name;
      if (path.starts_with("file://")) path.remove_prefix(7);
      TRY_ASSIGN(files.emplace_back(), InspectFile(path, content));
      continue;
    }
    if (!stores) stores.emplace(context);
    TRY_ASSIGN(const std::vector<std::string> uris, stores->Expand(name));
    TRY_ASSIGN(std::vector<SourceFile> objects, InspectObjects(uris, content, &*stores));
    std::ranges::move(objects, std::back_inserter(files));
  }
  return files;
}

}  // namespace

struct Corpus::State {
  std::vector<SourceFile> files;
  std::vector<uint64_t> starts;  // weight before each file; one more entry: the total
  uint64_t stored_bytes = 0;
  uint64_t fingerprint = 0;

  mutable Mutex mu;
  mutable std::unordered_map<size_t, uint64_t> measured;  // text bytes by file; guarded by mu

  // One thread measures a file; the other threads of the process wait for the result.
  Result<uint64_t> TextBytes(size_t file) const {
    const MutexLock lock(mu);
    const auto found = measured.find(file);
    if (found != measured.end()) return found->second;
    TRY_ASSIGN(const uint64_t bytes, MeasureText(files[file]));
    measured.emplace(file, bytes);
    return bytes;
  }

  // The boundary with the weight `target` before it; moved to the end of a compressed file that is
  // at most `near` away.
  Result<ShardBorder> FindBorder(uint64_t target, uint64_t near) const {
    if (target == 0) return ShardBorder{};
    if (target >= starts.back()) return ShardBorder{{files.size(), 0}, starts.back()};
    const auto after = std::upper_bound(starts.begin(), starts.end(), target);
    const auto file = static_cast<size_t>(after - starts.begin()) - 1;
    const uint64_t into = target - starts[file];
    if (files[file].compression == Compression::kNone) return ShardBorder{{file, into}, target};
    if (into <= near) return ShardBorder{{file, 0}, starts[file]};
    if (starts[file + 1] - target <= near) return ShardBorder{{file + 1, 0}, starts[file + 1]};
    TRY_ASSIGN(const uint64_t text, TextBytes(file));
    return ShardBorder{{file, Scale(text, into, starts[file + 1] - starts[file])}, target};
  }

  // The ranges of a part that hold something.
  Result<std::vector<BorderRange>> RangesOf(uint64_t part, const Division& division) const {
    const uint64_t total = starts.back(), near = total / division.parts / 20;
    const uint64_t all = division.parts * division.blocks;
    std::vector<BorderRange> ranges;
    for (uint64_t block = 0; block < all; ++block) {
      if (division.PartOf(block) != part) continue;
      TRY_ASSIGN(const ShardBorder from, FindBorder(Scale(total, block, all), near));
      TRY_ASSIGN(const ShardBorder to, FindBorder(Scale(total, block + 1, all), near));
      if (from.place == to.place) continue;
      if (!ranges.empty() && ranges.back().to.place == from.place) {
        ranges.back().to = to;
      } else {
        ranges.push_back({from, to});
      }
    }
    return ranges;
  }

  // The border before shard `index` of `count` (index ≤ count) that have about the same weight each
  // of these ranges.
  Result<RangeBorder> FindWithin(const std::vector<BorderRange>& ranges, uint64_t index,
                                 uint64_t count) const {
    if (index == 0) return RangeBorder{0, ranges.front().from.place};
    if (index == count) return RangeBorder{ranges.size() - 1, ranges.back().to.place};
    uint64_t weight = 0;
    for (const BorderRange& range : ranges) weight += range.weight();
    uint64_t left = Scale(weight, index, count);
    size_t i = 0;
    while (i + 1 < ranges.size() && left >= ranges[i].weight()) left -= ranges[i++].weight();
    TRY_ASSIGN(const ShardBorder border,
               FindBorder(ranges[i].from.weight + left, weight / count / 20));
    return RangeBorder{i, std::clamp(border.place, ranges[i].from.place, ranges[i].to.place)};
  }

  std::vector<Segment> Between(const ShardBoundary& from, const ShardBoundary& to) const {
    std::vector<Segment> segments;
    for (size_t file = from.file; file <= to.file && file < files.size(); ++file) {
      const uint64_t begin = file == from.file ? from.position : 0;
      const uint64_t end = file == to.file ? to.position : kEndOfFile;
      if (begin < end) segments.push_back({file, begin, end});
    }
    return segments;
  }
};

Result<Corpus> Corpus::Open(const std::vector<std::string>& paths) {
  return Open(paths, ObjectContext());
}

Result<Corpus> Corpus::Open(const std::vector<std::string>& paths, ObjectContext context,
                            Content content) {
  if (paths.empty()) return InvalidArgument("no data file was named");
  TRY_ASSIGN(const std::vector<SourceFile> found, InspectAll(paths, std::move(context), content));
  auto state = std::make_shared<State>();
  for (const SourceFile& file : found) {
    if (file.stored_bytes > 0) {
      state->files.push_back(file);
    } else if (found.size() > 1) {
      LogWarning("data file {} is empty and left out", file.path.string());
    }
  }
  if (state->files.empty()) {
    return InvalidArgument(found.size() == 1
                               ? "data file " + found.front().path.string() + " is empty"
                               : "all " + std::to_string(found.size()) + " data files are empty");
  }
  uint64_t weight = 0;
  for (const SourceFile& file : state->files) {
    state->starts.push_back(weight);
    weight += WeightOf(file);
    state->stored_bytes += file.stored_bytes;
    state->fingerprint = Mix(state->fingerprint, file.stored_bytes);
    state->fingerprint = Mix(state->fingerprint, static_cast<uint64_t>(file.compression) + 2);
    if (file.object == nullptr) continue;
    for (const char c : file.object->info().version)
      state->fingerprint = Mix(state->fingerprint, static_cast<unsigned char>(c));
  }
  state->starts.push_back(weight);
  return Corpus(std::move(state));
}

Corpus Corpus::WithCopies(const std::map<size_t, std::filesystem::path>& copies) const {
  if (copies.empty()) return *this;
  auto state = std::make_shared<State>();
  state->files = state_->files;
  state->starts = state_->starts;
  state->stored_bytes = state_->stored_bytes;
  state->fingerprint = state_->fingerprint;
  {
    const MutexLock lock(state_->mu);
    state->measured = state_->measured;
  }
  for (const auto& [file, path] : copies) {
    state->files.at(file).path = path;
    state->files.at(file).object = nullptr;
  }
  return Corpus(std::move(state));
}

std::map<uint64_t, uint64_t> Corpus::BytesByPart(size_t file, const Division& division) const {
  const uint64_t total = state_->starts.back();
  const uint64_t first = state_->starts.at(file);
  const uint64_t last = state_->starts.at(file + 1);
  const uint64_t count = division.parts * division.blocks;
  std::map<uint64_t, uint64_t> bytes;
  for (uint64_t block = Scale(count, first, total); block < count; ++block) {
    const uint64_t begin = std::max(first, Scale(total, block, count));
    const uint64_t end = std::min(last, Scale(total, block + 1, count));
    if (begin >= last) break;
    if (begin >= end) continue;
    bytes[division.PartOf(block)] += Scale(files()[file].stored_bytes, end - begin, last - first);
  }
  return bytes;
}

const std::vector<SourceFile>& Corpus::files() const { return state_->files; }
uint64_t Corpus::stored_bytes() const { return state_->stored_bytes; }
uint64_t Corpus::fingerprint() const { return state_->fingerprint; }

Result<std::vector<ShardRange>> Corpus::RangesOf(uint64_t part, const Division& division) const {
  TRY_ASSIGN(const std::vector<BorderRange> found, state_->RangesOf(part, division));
  std::vector<ShardRange> ranges;
  for (const BorderRange& range : found) ranges.push_back({range.from.place, range.to.place});
  return ranges;
}

Result<Shard> Corpus::MakeShard(uint64_t index, uint64_t count) const {
  return MakeShardWithin(0, {}, index, count);
}

Result<Shard> Corpus::MakeShardWithin(uint64_t part, const Division& division, uint64_t index,
                                      uint64_t count) const {
  if (part >= division.parts || index >= count) {
    return InvalidArgument(fmt::format("there is no shard {} of {} in part {} of {} of the data",
                                       index, count, part, division.parts));
  }
  TRY_ASSIGN(const std::vector<BorderRange> ranges, state_->RangesOf(part, division));
  Shard shard{part * count + index, division.parts * count, {}};
  if (ranges.empty()) return shard;
  TRY_ASSIGN(const RangeBorder from, state_->FindWithin(ranges, index, count));
  TRY_ASSIGN(const RangeBorder to, state_->FindWithin(ranges, index + 1, count));
  for (size_t i = from.range; i <= to.range; ++i) {
    const ShardBoundary begin = i == from.range ? from.place : ranges[i].from.place;
    const ShardBoundary end = i == to.range ? to.place : ranges[i].to.place;
    for (const Segment& segment : state_->Between(begin, end)) shard.segments.push_back(segment);
  }
  return shard;
}

}  // namespace shoal::data
