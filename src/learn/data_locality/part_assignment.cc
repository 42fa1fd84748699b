#include "learn/data_locality/part_assignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <tuple>

#include "base/bytes.h"
#include "base/log.h"

namespace shoal::learn {
namespace {

constexpr const char* kHeld = "near/";
constexpr const char* kParts = "parts";
constexpr auto kPoll = std::chrono::milliseconds(5);
constexpr auto kSlowPoll = std::chrono::milliseconds(100);

std::string EncodeCachedParts(const std::vector<CachedPart>& held) {
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.Put(static_cast<uint32_t>(held.size()));
  for (const CachedPart& one : held) {
    writer.Put(one.part);
    writer.Put(one.bytes);
  }
  return bytes;
}

// Malformed data counts as no preference.
std::vector<CachedPart> DecodeCachedParts(std::string_view bytes, uint32_t workers) {
  ByteReader reader(bytes);
  uint32_t count = 0;
  if (!reader.Get(&count).ok() || count > kMaxCachedParts) return {};
  std::vector<CachedPart> held(count);
  for (CachedPart& one : held) {
    if (!reader.Get(&one.part).ok() || !reader.Get(&one.bytes).ok() || one.part >= workers)
      return {};
  }
  return held;
}

std::string EncodeParts(const std::vector<uint32_t>& parts) {
  std::string bytes;
  ByteWriter writer(&bytes);
  for (const uint32_t part : parts) writer.Put(part);
  return bytes;
}

Result<PartAssignment> DecodeParts(std::string bytes, const PartRequest& ask) {
  const auto workers = static_cast<size_t>(ask.workers);
  if (bytes.size() % sizeof(uint32_t) == 0 && bytes.size() / sizeof(uint32_t) != workers) {
    return FailedPrecondition(
        fmt::format("the data is divided among {} workers, got {}; run the job with as many as "
                    "before, or anew",
                    bytes.size() / sizeof(uint32_t), workers));
  }
  std::vector<uint32_t> parts(workers);
  std::vector<bool> taken(workers);
  ByteReader reader(bytes);
  bool good = bytes.size() == workers * sizeof(uint32_t);
  for (uint32_t& part : parts) {
    good = good && reader.Get(&part).ok() && part < workers && !taken[part];
    if (good) taken[part] = true;
  }
  if (!good)
    return DataLoss("which part of the data each worker takes is malformed on the servers");
  return PartAssignment{parts[static_cast<size_t>(ask.index)], std::move(bytes)};
}

// For the deciding worker: waits until all have published their cached parts, or the timeout has
// passed, then publishes the decision.
Status DecideParts(const PartRequest& ask, const std::vector<std::string>& names) {
  const auto workers = static_cast<uint32_t>(ask.workers);
  std::vector<std::vector<CachedPart>> held(workers);
  for (uint32_t worker = 0; worker < workers && !names.empty(); ++worker) {
    const Result<std::string> bytes = ask.client->GetBlob(kHeld + std::to_string(worker));
    if (bytes.ok()) {
      held[worker] = DecodeCachedParts(*bytes, workers);
    } else if (bytes.status().code() != Code::kNotFound) {
      return bytes.status();
    }
  }
  TRY(ask.shared_blobs->Publish(kParts, EncodeParts(AssignParts(held))));
  for (const std::string& name : names) TRY(ask.client->DeleteBlob(name));
  return Status::Ok();
}

}  // namespace

std::vector<uint32_t> AssignParts(const std::vector<std::vector<CachedPart>>& held) {
  struct PartOffer {
    uint64_t bytes;
    uint32_t worker;
    uint32_t part;
  };
  std::vector<PartOffer> offers;
  for (uint32_t worker = 0; worker < held.size(); ++worker) {
    for (const CachedPart& one : held[worker]) {
      if (one.bytes > 0) offers.push_back({one.bytes, worker, one.part});
    }
  }
  std::sort(offers.begin(), offers.end(), [](const PartOffer& a, const PartOffer& b) {
    return std::tuple(b.bytes, a.worker != a.part, a.worker, a.part) <
           std::tuple(a.bytes, b.worker != b.part, b.worker, b.part);
  });
  std::vector<std::optional<uint32_t>> parts(held.size());
  std::vector<bool> taken(held.size());
  const auto give = [&](uint32_t worker, uint32_t part) {
    if (parts[worker] || taken[part]) return;
    parts[worker] = part;
    taken[part] = true;
  };
  for (const PartOffer& offer : offers) give(offer.worker, offer.part);
  for (uint32_t worker = 0; worker < held.size(); ++worker) give(worker, worker);
  std::vector<uint32_t> all;
  uint32_t left = 0;
  for (const auto& part : parts) {
    while (!part && taken[left]) ++left;
    all.push_back(part ? *part : left++);
  }
  return all;
}

Result<PartAssignment> AgreeOnParts(const PartRequest& ask, const data::Corpus& corpus) {
  const auto own = static_cast<uint64_t>(ask.index);
  if (ask.fixed || ask.workers == 1 || ask.data_cache->keep == CacheMode::kOff)
    return PartAssignment{own, {}};
  const TimePoint begin = RealClock::Get()->Now();
  std::optional<std::optional<std::vector<CachedPart>>> held;  // unset: not determined yet
  for (int attempt = 0;; ++attempt) {
    Result<std::string> told = ask.shared_blobs->Read(kParts);
    if (told.ok()) return DecodeParts(std::move(*told), ask);
    if (told.status().code() != Code::kNotFound) return told.status();
    if (ask.stop->load()) return Cancelled("stopped before the training began");
    if (!held)
      held = FindCachedParts(corpus, {static_cast<uint64_t>(ask.workers), ask.blocks},
                             *ask.data_cache);
    const Duration waited = RealClock::Get()->Now() - begin;
    const std::vector<int> ended = ask.ended ? ask.ended() : std::vector<int>();
    const bool decides = DecidesForAll(ask.index, ended);
    if (decides && !*held) {  // no data is cached: no part moves
      TRY(DecideParts(ask, {}));
      continue;
    }
    TRY_ASSIGN(const std::vector<std::string> names, ask.client->ListBlobs(kHeld));
    const std::string name = kHeld + std::to_string(ask.index);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      TRY(ask.client->PutBlob(name, EncodeCachedParts(held->value_or(std::vector<CachedPart>{}))));
    } else if (decides && (AllHaveAsked(kHeld, names, ask.workers, ended) ||
                           waited > ask.cached_parts_timeout)) {
      TRY(DecideParts(ask, names));
      continue;
    }
    if (waited > kPartsTimeout) {
      return DeadlineExceeded(
          "the first worker has not said which part of the data each worker takes; run the job "
          "again, or with learn.cache_data: off");
    }
    std::this_thread::sleep_for(
        std::min<std::chrono::milliseconds>(kPoll * (1 + attempt / 4), kSlowPoll));
  }
}

uint64_t PartAssignment::Of(int worker) const {
  ByteReader reader(told);
  auto part = static_cast<uint32_t>(worker);
  for (int i = 0; i <= worker && !told.empty(); ++i) {
    if (!reader.Get(&part).ok()) return static_cast<uint64_t>(worker);
  }
  return part;
}

}  // namespace shoal::learn
