#include "learn/word2vec/vocabulary_phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "data/text/word_counts.h"

namespace shoal::learn::word2vec {
namespace {

constexpr const char* kVocabulary = "vocabulary";
constexpr const char* kThreads = "threads";
constexpr const char* kPrefix = "counts/";
constexpr const char* kAsksThreads = "asks-threads/";  // … and the worker that needs the number
constexpr auto kPoll = std::chrono::milliseconds(5);
constexpr auto kSlowPoll = std::chrono::milliseconds(100);

std::string PartName(int worker) { return kPrefix + std::to_string(worker); }

// The pause between polls, growing from kPoll to kSlowPoll.
void Pause(int attempt) {
  std::this_thread::sleep_for(
      std::min<std::chrono::milliseconds>(kPoll * (1 + attempt / 4), kSlowPoll));
}

std::vector<int> EndedOf(const WorkerSetup& setup) {
  return setup.ended ? setup.ended() : std::vector<int>();
}

bool CanDecide(const WorkerSetup& setup, const char* prefix,
               const std::vector<std::string>& names) {
  const std::vector<int> ended = EndedOf(setup);
  return DecidesForAll(setup.index, ended) && AllHaveAsked(prefix, names, setup.workers, ended);
}

Result<std::string> CountPart(const WorkerSetup& setup, const data::Corpus& corpus, int worker) {
  const auto threads = static_cast<uint64_t>(setup.params.threads);
  const uint64_t part = setup.part.Of(worker);
  setup.reporter->Progress({{"phase", "count"}, {"unit", "words"}});
  TRY_ASSIGN(const data::WordCounts counts,
             data::CountShards(corpus, part * threads, (part + 1) * threads,
                               static_cast<uint64_t>(setup.workers) * threads));
  return counts.Encode();
}

// Counts the parts of workers that have ended: after servers have restarted empty, those do not
// count again.
Status CountForEnded(const WorkerSetup& setup, const data::Corpus& corpus,
                     const std::vector<std::string>& names) {
  for (const int worker : EndedOf(setup)) {
    if (worker < 0 || worker >= setup.workers || worker == setup.index ||
        std::find(names.begin(), names.end(), PartName(worker)) != names.end())
      continue;
    TRY_ASSIGN(const std::string counted, CountPart(setup, corpus, worker));
    TRY(setup.client->PutBlob(PartName(worker), counted));
  }
  return Status::Ok();
}

// Call when all counts are present.
Status Merge(const WorkerSetup& setup) {
  std::vector<data::WordCounts> parts;
  for (int worker = 0; worker < setup.workers; ++worker) {
    TRY_ASSIGN(const std::string bytes, setup.client->GetBlob(PartName(worker)));
    Result<data::WordCounts> part = data::WordCounts::Decode(bytes);
    if (!part.ok()) return part.status().With(fmt::format("counts of worker {}", worker));
    parts.push_back(std::move(*part));
  }
  TRY_ASSIGN(const data::WordCounts all, data::MergeCounts(std::move(parts)));
  TRY_ASSIGN(const data::Vocabulary vocabulary,
             data::Vocabulary::Make(all, static_cast<uint64_t>(setup.params.min_count)));
  if (vocabulary.size() < 2) {
    return FailedPrecondition(fmt::format(
        "only one word occurs {} times (min_count): vectors need two different ones at least; "
        "lower min_count or give more text",
        setup.params.min_count));
  }
  TRY(setup.shared_blobs->Publish(kVocabulary, vocabulary.Encode()));
  for (int worker = 0; worker < setup.workers; ++worker)
    TRY(setup.client->DeleteBlob(PartName(worker)));
  return Status::Ok();
}

}  // namespace

Result<int64_t> AgreeOnThreads(const WorkerSetup& setup) {
  if (setup.params.deterministic) return 1;
  if (setup.params.threads > 0) return setup.params.threads;
  const std::string ask = kAsksThreads + std::to_string(setup.index);
  for (int attempt = 0;; ++attempt) {
    const Result<std::string> agreed = setup.shared_blobs->Read(kThreads);
    if (agreed.ok()) return std::clamp<int64_t>(std::atoll(agreed->c_str()), 1, 1024);
    if (agreed.status().code() != Code::kNotFound) return agreed.status();
    if (setup.stop->load()) return Cancelled("stopped before the training began");
    TRY_ASSIGN(const std::vector<std::string> names, setup.client->ListBlobs(kAsksThreads));
    if (std::find(names.begin(), names.end(), ask) == names.end()) {
      TRY(setup.client->PutBlob(ask, ""));
    } else if (CanDecide(setup, kAsksThreads, names)) {
      TRY(setup.shared_blobs->Publish(kThreads, std::to_string(setup.default_threads)));
      for (const std::string& name : names) TRY(setup.client->DeleteBlob(name));
      return setup.default_threads;
    } else {
      Pause(attempt);
    }
  }
}

Result<data::Vocabulary> AgreeOnVocabulary(const WorkerSetup& setup, const data::Corpus& corpus) {
  std::string own;
  for (int attempt = 0;; ++attempt) {
    const Result<std::string> agreed = setup.shared_blobs->Read(kVocabulary);
    if (agreed.ok()) return data::Vocabulary::Decode(*agreed);
    if (agreed.status().code() != Code::kNotFound) return agreed.status();
    if (setup.stop->load()) return Cancelled("stopped before the training began");

    if (own.empty()) {
      TRY_ASSIGN(own, CountPart(setup, corpus, setup.index));
    }
    TRY_ASSIGN(const std::vector<std::string> names, setup.client->ListBlobs(kPrefix));
    if (std::find(names.begin(), names.end(), PartName(setup.index)) == names.end()) {
      // Not published yet, or lost by a restarted server.
      TRY(setup.client->PutBlob(PartName(setup.index), own));
      continue;
    }
    if (CanDecide(setup, kPrefix, names)) {
      TRY(CountForEnded(setup, corpus, names));
      const Status merged = Merge(setup);
      if (!merged.ok() && merged.code() != Code::kNotFound) return merged;
      continue;
    }
    Pause(attempt);
  }
}

}  // namespace shoal::learn::word2vec
