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

  Result<ShardBorder> FindBoundary(uint64_t index, uint64_t count) const {
    const uint64_t total = starts.back();
    return FindBorder(Scale(total, index, count), total / count / 20);
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

std::map<uint64_t, uint64_t> Corpus::BytesByPart(size_t file, uint64_t count) const {
  const uint64_t total = state_->starts.back();
  const uint64_t first = state_->starts.at(file);
  const uint64_t last = state_->starts.at(file + 1);
  std::map<uint64_t, uint64_t> bytes;
  for (uint64_t part = Scale(count, first, total); part < count; ++part) {
    const uint64_t begin = std::max(first, Scale(total, part, count));
    const uint64_t end = std::min(last, Scale(total, part + 1, count));
    if (begin >= last) break;
    if (begin < end) bytes[part] = Scale(files()[file].stored_bytes, end - begin, last - first);
  }
  return bytes;
}

const std::vector<SourceFile>& Corpus::files() const { return state_->files; }
uint64_t Corpus::stored_bytes() const { return state_->stored_bytes; }
uint64_t Corpus::fingerprint() const { return state_->fingerprint; }

Result<ShardBoundary> Corpus::FindBoundary(uint64_t index, uint64_t count) const {
  TRY_ASSIGN(const ShardBorder border, state_->FindBoundary(index, count));
  return border.place;
}

Result<Shard> Corpus::MakeShard(uint64_t index, uint64_t count) const {
  return MakeShardWithin(0, 1, index, count);
}

Result<Shard> Corpus::MakeShardWithin(uint64_t part, uint64_t parts, uint64_t index,
                                      uint64_t count) const {
  if (part >= parts || index >= count) {
    return InvalidArgument(fmt::format("there is no shard {} of {} in part {} of {} of the data",
                                       index, count, part, parts));
  }
  TRY_ASSIGN(const ShardBorder first, state_->FindBoundary(part, parts));
  TRY_ASSIGN(const ShardBorder last, state_->FindBoundary(part + 1, parts));
  const uint64_t weight = last.weight - first.weight;
  const auto border = [&](uint64_t i) -> Result<ShardBorder> {
    if (i == 0) return first;
    if (i == count) return last;
    return state_->FindBorder(first.weight + Scale(weight, i, count), weight / count / 20);
  };
  TRY_ASSIGN(const ShardBorder from, border(index));
  TRY_ASSIGN(const ShardBorder to, border(index + 1));
  return Shard{part * count + index, parts * count, state_->Between(from.place, to.place)};
}

}  // namespace shoal::data
