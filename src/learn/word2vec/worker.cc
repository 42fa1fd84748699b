#include "learn/word2vec/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "data/text/encoder.h"
#include "learn/preflight.h"
#include "learn/task/memory.h"
#include "learn/task/model_output.h"
#include "learn/word2vec/training.h"
#include "learn/word2vec/vocabulary_phase.h"
#include "model/save_model.h"

namespace shoal::learn::word2vec {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(5);
constexpr auto kSlowPoll = std::chrono::milliseconds(100);
// How long the first worker of a drained job waits for the others; SIGKILL comes after 10 s.
constexpr auto kDrainTimeout = std::chrono::seconds(4);

ps::TableSpec SpecOf(TableKind kind, const Params& params, uint64_t rows) {
  ps::TableSpec spec;
  spec.name = kind == kInput ? "input" : "output";
  spec.rows = rows;
  spec.dim = static_cast<uint32_t>(params.dim);
  spec.optimizer.kind = ps::OptimizerKind::kAdd;
  if (kind == kInput) {
    // As word2vec.c: uniform in [−½, ½) / dim.
    const float bound = 0.5f / static_cast<float>(params.dim);
    spec.initializer = {ps::InitializerKind::kUniform, -bound, bound,
                        static_cast<uint64_t>(params.seed)};
  }
  return spec;
}

// Where the threads begin: where an earlier life of this worker was, or at the start.
Result<std::vector<Position>> StartingPositions(const WorkerSetup& setup) {
  const Result<std::string> saved = setup.client->GetProgress(setup.index);
  if (saved.ok() && !saved->empty()) {
    TRY_ASSIGN(std::vector<Position> positions, DecodePositions(*saved));
    if (setup.params.deterministic && setup.workers > 1) {
      return FailedPrecondition(
          "a worker of a deterministic job was lost and cannot take up its place again; run the "
          "job anew");
    }
    return positions;
  }
  if (!saved.ok() && saved.status().code() != Code::kNotFound) return saved.status();
  std::vector<Position> positions(static_cast<size_t>(setup.params.threads));
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto stream = static_cast<uint64_t>(setup.index) * 65536 + static_cast<uint64_t>(i) + 1;
    positions[i].random = Random::Of(static_cast<uint64_t>(setup.params.seed), stream).state();
  }
  return positions;
}

Result<std::vector<data::EncodedShard>> EncodeShards(const WorkerSetup& setup,
                                                     const data::Corpus& corpus,
                                                     const data::Vocabulary& vocabulary) {
  const auto threads = static_cast<uint64_t>(setup.params.threads);
  const uint64_t count = static_cast<uint64_t>(setup.workers) * threads;
  std::vector<std::optional<Result<data::EncodedShard>>> encoded(threads);
  std::vector<std::thread> running;
  for (uint64_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      const uint64_t index = setup.part.own * threads + i;
      const Result<data::Shard> shard = corpus.MakeShard(index, count);
      encoded[i] = shard.ok() ? data::EncodedShard::Make(corpus, *shard, vocabulary, setup.scratch)
                              : Result<data::EncodedShard>(shard.status());
    });
  }
  for (std::thread& thread : running) thread.join();
  std::vector<data::EncodedShard> shards;
  for (auto& result : encoded) {
    TRY_ASSIGN(data::EncodedShard shard, std::move(*result));
    shards.push_back(std::move(shard));
  }
  return shards;
}

Result<const Kernels*> KernelsFor(const Params& params) {
  if (!params.deterministic || params.simd != "auto") return ChooseKernels(params.simd);
  // Not the best, but what most machines have, so that they agree to the last bit.
  const Result<const Kernels*> common = ChooseKernels("avx2");
  return common.ok() ? common : ChooseKernels("auto");
}

// Until every other worker has told that it has ended. One that was told to end early comes again,
// unless this one has been told the same.
Status AwaitOthers(const WorkerSetup& setup, Training& training, WorkerState state) {
  const TimePoint begin = RealClock::Get()->Now();
  TimePoint stopped{};
  while (training.all().running > 0 || (training.all().to_come > 0 && !setup.stop->load())) {
    const TimePoint now = RealClock::Get()->Now();
    if (setup.stop->load() && stopped == TimePoint{}) stopped = now;
    if (stopped != TimePoint{} && now - stopped > kDrainTimeout) {
      LogWarning("{} workers have not drained within {}; saving without their last words",
                 training.all().running, FormatDuration(kDrainTimeout));
      return Status::Ok();
    }
    std::this_thread::sleep_for(kPoll);
    TRY(training.PublishProgress(state));
    if (now - begin > std::chrono::seconds(1)) {
      setup.reporter->Progress(
          {{"phase", "wait"}, {"step", training.all().words}, {"unit", "words"}});
    }
  }
  return Status::Ok();
}

// Until worker 0 saves. Only a worker that is still here tells its last totals again if the servers
// lose them: a server that comes back from a checkpoint knows less, and worker 0 may not have heard
// them before.
Status AwaitSaving(const WorkerSetup& setup, Training& training) {
  auto pause = kPoll;
  while (!training.all().saving && !setup.stop->load()) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kSlowPoll);
    TRY(training.PublishProgress(WorkerState::kFinished));
  }
  return Status::Ok();
}

json::object MetadataOf(const WorkerSetup& setup, const data::Vocabulary& vocabulary,
                        const Training& training, double seconds, double rate) {
  json::object parameters;
  for (const auto& [name, text] : ToText(setup.params)) parameters[name] = text;
  json::array curve;
  for (const auto& [words, loss] : training.loss_curve()) curve.push_back(json::array{words, loss});
  json::array files;
  for (const std::string& source : setup.sources) files.emplace_back(source);
  return {{"algorithm", "word2vec"},
          {"parameters", std::move(parameters)},
          {"loss", std::move(curve)},
          {"data",
           {{"files", std::move(files)},
            {"digest", vocabulary.text_digest()},
            {"words", vocabulary.text_words()},
            {"vocabulary_words", vocabulary.words()}}},
          {"training",
           {{"seconds", seconds},
            {"words", training.all().words},
            {"words_per_second", rate},
            {"exchanged_bytes", static_cast<uint64_t>(training.all().bytes)},
            {"workers", setup.workers},
            {"servers", setup.servers},
            {"threads", setup.params.threads},
            {"drained", training.drained()}}}};
}

Result<model::SavedModel> Save(const WorkerSetup& setup, const data::Vocabulary& vocabulary,
                               const ps::TableRef& input, json::object metadata) {
  setup.reporter->Progress({{"phase", "save"}, {"unit", "words"}});
  const auto dim = static_cast<uint64_t>(setup.params.dim);
  model::ModelContent content;
  content.vectors.rows = vocabulary.size();
  content.vectors.dim = dim;
  content.vectors.word = [&](uint64_t row) { return vocabulary.word(static_cast<uint32_t>(row)); };
  content.vectors.read = [&](uint64_t first, uint64_t rows, float* to) {
    TRY(setup.client->PullRange(input, first, rows, ps::Rows(to, dim), kServerRestartTimeout));
    const bool finite = std::all_of(to, to + rows * dim, [](float x) { return std::isfinite(x); });
    return finite ? Status::Ok() : Diverged("a vector");
  };
  content.count = [&](uint64_t row) { return vocabulary.count(static_cast<uint32_t>(row)); };
  content.metadata = std::move(metadata);
  return SaveModelAt(setup.output, [&content](const std::filesystem::path& directory) {
    return model::SaveModel(directory, content);
  });
}

// Both matrices, as they are trained and as the servers have them; and the servers' own where the
// only worker has them in its process.
Status CheckFits(const WorkerSetup& setup, const data::Vocabulary& vocabulary) {
  const size_t stride = Stride(static_cast<size_t>(setup.params.dim));
  const uint64_t matrix = uint64_t{vocabulary.size()} * stride * sizeof(float);
  const uint64_t copies = setup.server_inside ? 3 : 2;
  return CheckMemory(kTables * copies * matrix, FreeMemory(),
                     "use a smaller dim or a larger min_count");
}

// A word is learnt from those beside it on its line.
Status NoContexts(const Params& params) {
  const bool thinned = params.sample > 0;
  return FailedPrecondition(fmt::format(
      "nothing was learnt, as no word has another one beside it on its line{}; nothing "
      "is saved. Put the words of a sentence on one line{}",
      thinned ? fmt::format(" (sample {} may have thinned them out)", params.sample) : "",
      thinned ? ", or take a larger sample" : ""));
}

// After the vocabulary: tables, shards, training, and for the first worker the model.
Result<WorkerOutcome> TrainAndSave(const WorkerSetup& setup, const data::Corpus& corpus,
                                   const data::Vocabulary& vocabulary, std::vector<Position> from) {
  TRY(CheckFits(setup, vocabulary));
  TRY_ASSIGN(const Kernels* kernels, KernelsFor(setup.params));
  ps::TableRef tables[kTables];
  for (const TableKind kind : {kInput, kOutput}) {
    TRY_ASSIGN(tables[kind],
               setup.client->CreateTable(SpecOf(kind, setup.params, vocabulary.size()),
                                         kServerRestartTimeout));
  }
  TRY_ASSIGN(const std::unique_ptr<JobProgress> progress,
             JobProgress::Make(setup.client, setup.index, setup.workers, setup.ended));
  TRY_ASSIGN(const std::vector<data::EncodedShard> shards, EncodeShards(setup, corpus, vocabulary));
  TRY_ASSIGN(const std::unique_ptr<RowCache> cache,
             RowCache::Make(setup.client, kernels, tables,
                            setup.index == 0 ? setup.restarted_servers : nullptr));
  cache->set_wire(WireOf(setup.params, setup.workers));
  TRY(cache->Load());

  const bool resumed = std::any_of(from.begin(), from.end(),
                                   [](const Position& position) { return position.words > 0; });
  Training training(setup, vocabulary, shards, cache.get(), progress.get());
  const TimePoint begin = RealClock::Get()->Now();
  TRY(training.Run(std::move(from)));

  WorkerOutcome outcome;
  outcome.words = training.words();
  outcome.drained = training.drained();
  if (setup.index != 0) {
    if (!outcome.drained) TRY(AwaitSaving(setup, training));
    return outcome;
  }
  const WorkerState state = outcome.drained ? WorkerState::kDrained : WorkerState::kFinished;
  TRY(AwaitOthers(setup, training, state));
  if (!outcome.drained) TRY(training.PublishProgress(WorkerState::kSaving));
  const double seconds = std::chrono::duration<double>(RealClock::Get()->Now() - begin).count();
  const uint64_t all = training.all().words;
  const uint64_t trained = all - std::min(all, training.words_before());
  outcome.words_per_second = seconds > 0 ? static_cast<double>(trained) / seconds : 0;
  outcome.job = {all, vocabulary.words(), static_cast<uint64_t>(setup.params.epochs), "words"};
  const Status conserved = CheckTrainedCount(outcome.job, "the job");
  outcome.drained = outcome.drained || (setup.stop->load() && !conserved.ok());
  if (!outcome.drained) TRY(conserved);
  outcome.exchanged_bytes = training.all().bytes;
  outcome.exchange_share = training.exchange_share();
  if (!training.loss_curve().empty()) outcome.loss = training.loss_curve().back().second;
  // An older model is better than one that has seen nothing.
  const bool learnt = all > 0 && (training.all().pairs > 0 || resumed);
  if (outcome.drained && !learnt)
    return Cancelled("stopped before anything was trained; nothing is saved");
  if (!learnt) return NoContexts(setup.params);
  if (!std::isfinite(outcome.loss)) return Diverged("the loss");
  TRY_ASSIGN(const model::SavedModel saved,
             Save(setup, vocabulary, tables[kInput],
                  MetadataOf(setup, vocabulary, training, seconds, outcome.words_per_second)));
  outcome.digest = saved.digest;
  return outcome;
}

}  // namespace

Result<WorkerOutcome> RunWorker(const WorkerSetup& given) {
  WorkerSetup setup = given;
  if (setup.index == 0) TRY(CheckOutput(*setup.client, setup.index, setup.output));
  SharedBlobs shared_blobs(setup.client);
  setup.shared_blobs = &shared_blobs;
  TRY_ASSIGN(const data::Corpus whole, data::Corpus::Open(setup.sources));
  TRY_ASSIGN(setup.part, AgreeOnParts({.index = setup.index,
                                       .workers = setup.workers,
                                       .fixed = setup.params.deterministic,
                                       .data_cache = &setup.data_cache,
                                       .client = setup.client,
                                       .shared_blobs = setup.shared_blobs,
                                       .stop = setup.stop,
                                       .ended = setup.ended},
                                      whole));
  TRY_ASSIGN(setup.params.threads, AgreeOnThreads(setup));
  TRY_ASSIGN(const CachedCorpus near,
             CacheWorkerPart(whole,
                             {static_cast<uint64_t>(setup.index), setup.part.own,
                              static_cast<uint64_t>(setup.params.threads),
                              static_cast<uint64_t>(setup.workers)},
                             setup.data_cache, *setup.reporter));
  const data::Corpus& corpus = near.corpus;
  TRY_ASSIGN(const data::Vocabulary vocabulary, AgreeOnVocabulary(setup, corpus));
  TRY_ASSIGN(std::vector<Position> from, StartingPositions(setup));
  // A life that goes on keeps the number of threads it began with: the shards depend on it.
  setup.params.threads = static_cast<int64_t>(from.size());
  Result<WorkerOutcome> outcome = TrainAndSave(setup, corpus, vocabulary, std::move(from));
  if (outcome.ok()) TRY(setup.client->Leave());
  return outcome;
}

}  // namespace shoal::learn::word2vec
