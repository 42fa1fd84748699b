#include "learn/sparse/worker.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "learn/sparse/csv_facts.h"
#include "learn/sparse/dataset.h"
#include "learn/sparse/training.h"
#include "model/factors.h"

namespace shoal::learn::sparse {
namespace {

constexpr const char* kFeatures = "features/";
constexpr auto kPoll = std::chrono::milliseconds(2);
constexpr auto kPatience = std::chrono::minutes(60);  // for the other workers' reading and training
// How long the first worker of a drained job waits for the others; SIGKILL comes after 10 s.
constexpr auto kDrainPatience = std::chrono::seconds(4);

// The examples of this worker and, for worker 0, those held out.
struct Data {
  std::vector<LoadedShard> train;
  std::vector<LoadedShard> held_out;
  uint64_t examples = 0;
  Extent extent;  // of every worker's part
};

// Nobody needs to be asked.
bool IsKnown(const CommonParams& params) {
  return params.hash_bits > 0 && (!params.keep_fields || params.fields > 0);
}

Extent Larger(const Extent& a, const Extent& b) {
  return {std::max(a.features, b.features), std::max(a.fields, b.fields)};
}

// What parameters say, whatever was seen.
Extent Given(const CommonParams& params, Extent seen) {
  if (params.hash_bits > 0) seen.features = uint64_t{1} << params.hash_bits;
  if (params.fields > 0) seen.fields = static_cast<uint32_t>(params.fields);
  return seen;
}

Result<Extent> DecodeExtent(std::string_view bytes, const std::string& name) {
  Extent extent;
  ByteReader reader(bytes);
  if (reader.Get(&extent.features).ok() && reader.Get(&extent.fields).ok() &&
      extent.features <= data::kMaxFeature + 1 && extent.fields <= data::kMaxFields)
    return extent;
  return DataLoss(name + " on the servers is no number of features and fields");
}

Result<Data> ReadData(WorkerSetup& setup) {
  setup.reporter->Progress({{"phase", "read"}, {"unit", "examples"}});
  const auto threads = static_cast<uint64_t>(setup.params.threads);
  const auto workers = static_cast<uint64_t>(setup.workers);
  TRY_ASSIGN(const data::Corpus whole, data::Corpus::Open(setup.sources));
  TRY_ASSIGN(setup.part, AgreeOnPart({.index = setup.index,
                                      .workers = setup.workers,
                                      .fixed = setup.params.deterministic,
                                      .near = &setup.near,
                                      .client = setup.client,
                                      .stop = setup.stop},
                                     whole));
  const uint64_t part = setup.part.own;
  TRY_ASSIGN(const NearCorpus near,
             BringPartNear(whole, {static_cast<uint64_t>(setup.index), part, threads, workers},
                           setup.near, *setup.reporter));
  const data::Corpus& corpus = near.corpus;
  TRY_ASSIGN(const data::ExampleOptions options,
             OptionsOf(setup.params, setup.format, corpus, true));
  if (options.csv != nullptr) setup.columns = options.csv->schema;
  Data data;
  TRY_ASSIGN(data.train, LoadShards(corpus, part * threads, threads, workers * threads, options,
                                    setup.params.normalize));
  for (const LoadedShard& shard : data.train) {
    data.extent = Larger(data.extent, {shard.set.feature_end, shard.set.field_end});
    data.examples += shard.set.size();
  }
  if (setup.index != 0 || setup.held_out.empty()) return data;
  TRY_ASSIGN(const data::Corpus held_out, data::Corpus::Open(setup.held_out));
  CommonParams as_trained = setup.params;
  as_trained.trained = setup.columns;
  TRY_ASSIGN(const data::ExampleOptions own, OptionsOf(as_trained, setup.format, held_out, true));
  TRY_ASSIGN(data.held_out, LoadShards(held_out, 0, threads, threads, own, setup.params.normalize));
  return data;
}

// The most features and fields that any worker has seen.
Result<Extent> Agree(const WorkerSetup& setup, const Extent& own) {
  if (setup.workers == 1 || IsKnown(setup.params)) return Given(setup.params, own);
  std::optional<int64_t> restarts;
  const TimePoint begin = RealClock::Get()->Now();
  for (;;) {
    // A server that came back may have forgotten what it was told.
    if (const int64_t now = setup.client->server_restarts(); restarts != now) {
      restarts = now;
      TRY(Announce(setup, own));
    }
    TRY_ASSIGN(const std::vector<std::string> names, setup.client->ListBlobs(kFeatures));
    if (names.size() >= static_cast<size_t>(setup.workers)) {
      Extent most = own;
      for (const std::string& name : names) {
        TRY_ASSIGN(const std::string bytes, setup.client->GetBlob(name));
        TRY_ASSIGN(const Extent theirs, DecodeExtent(bytes, name));
        most = Larger(most, theirs);
      }
      return Given(setup.params, most);
    }
    if (setup.stop->load()) return Cancelled("stopped before the training began");
    if (RealClock::Get()->Now() - begin > kPatience)
      return DeadlineExceeded("the other workers have not read their data within an hour");
    std::this_thread::sleep_for(kPoll);
  }
}

// Where the threads begin: where an earlier life of this worker was, or at the start.
Result<std::vector<Position>> StartingPositions(const WorkerSetup& setup) {
  const Result<std::string> saved = setup.client->GetProgress(setup.index);
  if (saved.ok() && !saved->empty()) {
    if (setup.params.deterministic && setup.workers > 1) {
      return FailedPrecondition(
          "a worker of a deterministic job was lost and cannot take up its place again; run the "
          "job anew");
    }
    return DecodePositions(*saved);
  }
  if (!saved.ok() && saved.status().code() != Code::kNotFound) return saved.status();
  return std::vector<Position>(static_cast<size_t>(setup.params.threads));
}

json::object QualityFacts(const Quality& quality) {
  json::object facts{{"log_loss", quality.log_loss},
                     {"accuracy", quality.accuracy},
                     {"examples", quality.examples},
                     {"positives", quality.positives}};
  if (std::isfinite(quality.auc)) facts["auc"] = quality.auc;
  return facts;
}

json::object FactsOf(const WorkerSetup& setup, const Training& training,
                     const WorkerOutcome& outcome, const model::FactorModel& model) {
  json::object parameters;
  for (const auto& [name, text] : setup.parameters) parameters[name] = text;
  json::array epochs;
  for (const EpochQuality& quality : training.curve()) {
    json::object epoch{{"epoch", quality.epoch}, {"train_loss", quality.train_loss}};
    if (quality.held_out.examples > 0) epoch["held_out"] = QualityFacts(quality.held_out);
    epochs.push_back(std::move(epoch));
  }
  json::array files;
  for (const std::string& source : setup.sources) files.emplace_back(source);
  uint64_t nonzero = 0;
  for (const float weight : model.linear.weights) nonzero += weight != 0;
  json::object facts{{"algorithm", setup.algorithm},
                     {"parameters", std::move(parameters)},
                     {"weights",
                      {{"features", model.linear.weights.size()},
                       {"nonzero", nonzero},
                       {"bias", model.linear.bias},
                       {"hash_bits", model.linear.hash_bits},
                       {"normalize", model.linear.normalize},
                       {"factors", model.factors},
                       {"fields", model.fields}}},
                     {"epochs", std::move(epochs)},
                     {"data", {{"files", std::move(files)}, {"format", NameOf(setup.format)}}},
                     {"training",
                      {{"examples_per_second", outcome.examples_per_second},
                       {"workers", setup.workers},
                       {"servers", setup.servers},
                       {"threads", setup.params.threads},
                       {"drained", outcome.drained}}}};
  if (setup.columns) facts["data"].as_object()["columns"] = ToJson(*setup.columns);
  if (outcome.held_out.examples > 0) facts["held_out"] = QualityFacts(outcome.held_out);
  return facts;
}

// Worker 0, after everybody has trained.
Status Save(const WorkerSetup& setup, const Training& training, const model::FactorModel& model,
            WorkerOutcome* outcome) {
  setup.reporter->Progress({{"phase", "save"}, {"unit", "examples"}});
  TRY_ASSIGN(const model::SavedModel saved,
             model::SaveFactorModel(setup.output, model, FactsOf(setup, training, *outcome, model),
                                    setup.params.text));
  outcome->digest = saved.digest;
  return Status::Ok();
}

// All workers' changes are with the servers, or those are gone who would have brought them.
Status AwaitOthers(const WorkerSetup& setup, bool drained) {
  if (setup.workers == 1) return Status::Ok();
  const Status all =
      setup.client->Barrier("trained", drained ? Duration(kDrainPatience) : Duration(kPatience));
  if (!drained || all.code() != Code::kDeadlineExceeded) return all;
  LogWarning("other workers have not drained within {}; saving without their last examples",
             FormatDuration(kDrainPatience));
  return Status::Ok();
}

Result<WorkerOutcome> TrainAndSave(const WorkerSetup& setup, Data& data,
                                   std::vector<Position> from) {
  TRY_ASSIGN(const std::unique_ptr<StateTable> table,
             StateTable::Make(setup.client, data.extent.features, setup.learner->width()));
  // A life before this one, or the checkpoint, left its state with the servers.
  const bool resumed =
      std::any_of(from.begin(), from.end(), [](const Position& at) { return !(at == Position{}); });
  if (resumed) TRY(table->Connect());
  for (LoadedShard& shard : data.held_out) DropFeaturesFrom(data.extent.features, &shard.set);

  Training training(setup, data.train, data.held_out, table.get());
  const TimePoint begin = RealClock::Get()->Now();
  TRY(training.Run(std::move(from)));
  const double seconds = std::chrono::duration<double>(RealClock::Get()->Now() - begin).count();
  WorkerOutcome outcome;
  outcome.examples = training.examples();
  outcome.drained = training.drained();
  if (!training.curve().empty()) outcome.train_loss = training.curve().back().train_loss;
  const double all = static_cast<double>(outcome.examples) * setup.workers;  // taken to be alike
  outcome.examples_per_second = seconds > 0 ? all / seconds : 0;
  TRY(AwaitOthers(setup, outcome.drained));
  if (setup.index != 0) return outcome;
  // An older model is better than one that has seen nothing.
  if (outcome.drained && outcome.examples == 0 && !resumed)
    return Cancelled("stopped before anything was trained; nothing is saved");

  if (setup.workers > 1) TRY(table->Exchange(0, 1, true));
  const model::FactorModel model = training.Model();
  if (!data.held_out.empty()) {
    // With one worker nothing has changed since the last epoch was measured.
    const bool known = setup.workers == 1 && !outcome.drained && !training.curve().empty();
    outcome.held_out = known ? training.curve().back().held_out : training.Measure(model);
  }
  TRY(Save(setup, training, model, &outcome));
  return outcome;
}

}  // namespace

Status Announce(const WorkerSetup& setup, const Extent& own) {
  if (setup.workers == 1 || IsKnown(setup.params)) return Status::Ok();
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.Put(own.features);
  writer.Put(own.fields);
  return setup.client->PutBlob(kFeatures + std::to_string(setup.index), bytes);
}

Result<WorkerOutcome> RunWorker(const WorkerSetup& given) {
  WorkerSetup setup = given;
  if (setup.index == 0) TRY(model::CheckModelOutput(setup.output));
  if (setup.params.threads == 0) setup.params.threads = setup.own_threads;
  if (setup.params.deterministic) setup.params.threads = 1;
  if (setup.format == data::ExampleFormat::kCsv && setup.params.hash_bits == 0)
    setup.params.hash_bits = kCsvHashBits;
  TRY_ASSIGN(std::vector<Position> from, StartingPositions(setup));
  // A life that goes on keeps the number of threads it began with: the shards depend on it.
  setup.params.threads = static_cast<int64_t>(from.size());
  TRY_ASSIGN(Data data, ReadData(setup));
  TRY_ASSIGN(data.extent, Agree(setup, data.extent));
  if (data.extent.features == 0 || (data.examples == 0 && setup.workers == 1)) {
    return InvalidArgument(
        "the training data holds no example with a feature; libsvm has lines of `LABEL "
        "NUMBER:VALUE …`, "
        "see docs/formats/examples.md for the others");
  }
  std::unique_ptr<Learner> own_learner;
  if (setup.params.keep_fields) {
    TRY_ASSIGN(own_learner, setup.learner->ForFields(data.extent.fields));
    setup.learner = own_learner.get();
  }
  Result<WorkerOutcome> outcome = TrainAndSave(setup, data, std::move(from));
  if (outcome.ok()) TRY(setup.client->Leave());
  return outcome;
}

}  // namespace shoal::learn::sparse
