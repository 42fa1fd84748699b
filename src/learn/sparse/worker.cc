#include "learn/sparse/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/log.h"
#include "data/examples/classes.h"
#include "learn/preflight.h"
#include "learn/sparse/base_model.h"
#include "learn/sparse/csv_schema_json.h"
#include "learn/sparse/dataset.h"
#include "learn/sparse/exchange/job_completion.h"
#include "learn/sparse/objective/labels.h"
#include "learn/sparse/softmax_learner.h"
#include "learn/sparse/training.h"
#include "learn/task/memory.h"
#include "learn/task/model_output.h"
#include "model/factor_model.h"

namespace shoal::learn::sparse {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int64_t kMostValidatedEpochs = 100;
constexpr uint64_t kMostClassWeights = 1u << 27;
constexpr uint64_t kThreadBytes = 256 << 10;  // of files, at least (ADR 391)

// The examples of this worker and, for worker 0, those held out.
struct Data {
  data::ExampleOptions options;        // with which `train` was read
  std::optional<data::Corpus> corpus;  // from which
  std::vector<LoadedShard> train;
  std::vector<LoadedShard> held_out;
  std::vector<LoadedShard> validation;
};

// What parameters say, whatever was seen.
FeatureExtent WithDefaults(const CommonParams& params, FeatureExtent seen) {
  if (params.hash_bits > 0) seen.features = uint64_t{1} << params.hash_bits;
  if (params.fields > 0) seen.fields = static_cast<uint32_t>(params.fields);
  return seen;
}

Result<PartSummary> SummarizePart(const data::Corpus& corpus, uint64_t part,
                                  const data::Division& division,
                                  const std::vector<LoadedShard>& shards,
                                  const DataMeaning& meaning) {
  PartSummary share;
  share.corpus = corpus.fingerprint();
  share.files = corpus.files().size();
  share.part = part;
  share.parts = division.parts;
  share.blocks = division.blocks;
  TRY_ASSIGN(share.ranges, corpus.RangesOf(part, division));
  for (const LoadedShard& shard : shards) {
    share.examples += shard.set.size();
    share.extent.features = std::max(share.extent.features, shard.set.feature_end);
    share.extent.fields = std::max(share.extent.fields, shard.set.field_end);
    share.columns.resize(std::max(share.columns.size(), shard.set.columns.size()));
    for (size_t i = 0; i < shard.set.columns.size(); ++i)
      share.columns[i].Merge(shard.set.columns[i]);
    CountLabels(shard.set, meaning.target.loss,
                meaning.columns ? meaning.columns->classes : std::vector<std::string>(), &share);
  }
  return share;
}

// What of each shard is not learnt from: the fold that is held out, and of the rest the share that
// is validated.
Status SplitData(const WorkerSetup& setup, Data* data) {
  constexpr uint64_t kFoldSeed = 0x5f01d;
  TRY_ASSIGN(const auto fold, FoldRange(setup.params.fold));
  TRY_ASSIGN(const double share, ValidationShare(setup.params.validation));
  data->validation.clear();
  if (fold.second > 0) data->held_out.clear();
  for (size_t i = 0; i < data->train.size(); ++i) {
    const uint64_t shard = setup.part.own * data->train.size() + i;
    const auto seed = static_cast<uint64_t>(setup.params.seed) * 0x1'0000 + shard;
    LoadedShard* const train = &data->train[i];
    if (fold.second > 0) data->held_out.push_back(TakeShare(fold, seed ^ kFoldSeed << 40, train));
    if (share > 0) data->validation.push_back(TakeShare({0, share}, seed, train));
  }
  return Status::Ok();
}

Result<Data> ReadData(WorkerSetup& setup) {
  setup.reporter->Progress({{"phase", "read"}, {"unit", "examples"}});
  const auto threads = static_cast<uint64_t>(setup.params.threads);
  TRY_ASSIGN(const data::Corpus whole, OpenExamples(setup.sources, setup.format));
  TRY_ASSIGN(const data::Division division, AgreedDivision(setup, whole));
  TRY_ASSIGN(setup.part, AgreeOnParts({.index = setup.index,
                                       .workers = setup.workers,
                                       .blocks = division.blocks,
                                       .fixed = setup.params.deterministic,
                                       .data_cache = &setup.data_cache,
                                       .client = setup.client,
                                       .shared_blobs = setup.shared_blobs,
                                       .stop = setup.stop},
                                      whole));
  const uint64_t part = setup.part.own;
  TRY_ASSIGN(const CachedCorpus near, CacheWorkerPart(whole,
                                                      {static_cast<uint64_t>(setup.index), part, 1,
                                                       division.parts, division.blocks},
                                                      setup.data_cache, *setup.reporter));
  const data::Corpus& corpus = near.corpus;
  Data data;
  TRY_ASSIGN(data.options, OptionsOf(setup.params, setup.format, corpus, true));
  if (data.options.csv != nullptr && setup.meaning.base == nullptr)
    setup.meaning.columns = data.options.csv->schema;
  if (setup.meaning.base != nullptr && setup.meaning.base->columns)
    TRY(CheckSameColumns(setup.params.from, *setup.meaning.base->columns,
                         data.options.csv->schema));
  const bool rows = setup.normalization == Normalization::kRows;
  TRY_ASSIGN(data.train, LoadShards(corpus, part, division, threads, data.options, rows));
  for (LoadedShard& shard : data.train) {
    const bool indexed = !shard.set.classes.empty() ||
                         (setup.meaning.base != nullptr && setup.meaning.base->columns);
    if (setup.meaning.target.loss.kind == LossKind::kSoftmax && !indexed)
      TRY(data::IndexLabels(&shard.set));
  }
  TRY(SplitData(setup, &data));
  TRY_ASSIGN(setup.share, SummarizePart(whole, part, division, data.train, setup.meaning));
  data.corpus = corpus;
  return data;
}

// Of several classes: fewer hashed features, so that the weights of all of them fit into 2^27 where
// hash_bits was not given. The data is read again.
Status HashForClasses(WorkerSetup& setup, bool chosen, Data* data) {
  const uint64_t classes = ClassesOf(setup);
  if (chosen || classes < 2 || !data::IsTable(setup.format)) return Status::Ok();
  int64_t bits = setup.params.hash_bits;
  while (bits > 1 && (classes << bits) > kMostClassWeights) --bits;
  if (bits == setup.params.hash_bits) return Status::Ok();
  setup.params.hash_bits = bits;
  data->options.hash_bits = static_cast<int>(bits);
  const bool rows = setup.normalization == Normalization::kRows;
  data->train.clear();
  TRY_ASSIGN(data->train,
             LoadShards(*data->corpus, setup.part.own, setup.share.division(),
                        static_cast<uint64_t>(setup.params.threads), data->options, rows));
  TRY(SplitData(setup, data));
  for (auto* const shards : {&data->train, &data->validation, &data->held_out}) {
    for (LoadedShard& shard : *shards) data::SetLabels(setup.meaning.columns->classes, &shard.set);
  }
  return Status::Ok();
}

// Their meaning, and with several classes a number of features that suits it.
Status GiveLabels(WorkerSetup& setup, const DatasetSummary& agreed, bool chosen, Data* data) {
  const auto shards = {&data->train, &data->validation, &data->held_out};
  if (setup.meaning.base != nullptr) return NameLabelsAsBase(setup, shards);
  TRY(NameLabels(agreed, data->options.raw_labels, &setup, shards));
  return HashForClasses(setup, chosen, data);
}

// That of the columns, if that is asked for, from what all workers have seen of them.
Status ScaleColumns(WorkerSetup& setup, const DatasetSummary& all, Data* data) {
  if (!data->options.raw_columns) return Status::Ok();
  std::vector<data::ColumnScale> scales;
  for (const data::ColumnSummary& column : all.columns) scales.push_back(data::ScaleOf(column));
  for (size_t i = 0; setup.index == 0 && i < all.columns.size(); ++i) {
    const uint64_t count = all.columns[i].not_finite;
    if (count == 0) continue;
    LogWarning(
        "column {}: {} cells hold an infinite number or one above 1e30; they count as missing",
        data->options.csv->schema.names[i], count);
  }
  const float row_scale = data::RowScaleOf(all.columns, all.total());
  const auto scaled = data->options.csv->WithScales(std::move(scales), row_scale);
  setup.meaning.columns->scales = scaled->schema.scales;
  setup.meaning.columns->row_scale = row_scale;
  TRY(ScaleShards(data->options, *scaled, &data->train));
  TRY(ScaleShards(data->options, *scaled, &data->validation));
  return ScaleShards(data->options, *scaled, &data->held_out);
}

// Files that are not learnt from, read as the training data.
Result<std::vector<LoadedShard>> ReadAsTrained(const WorkerSetup& setup,
                                               const std::vector<std::string>& files) {
  TRY_ASSIGN(const data::Corpus corpus, OpenExamples(files, setup.format));
  CommonParams as_trained = setup.params;
  as_trained.trained = setup.meaning.columns;
  as_trained.continues = false;
  TRY_ASSIGN(const data::ExampleOptions own, OptionsOf(as_trained, setup.format, corpus, true));
  const auto threads = static_cast<uint64_t>(setup.params.threads);
  const bool rows = setup.normalization == Normalization::kRows;
  TRY_ASSIGN(std::vector<LoadedShard> shards, LoadShards(corpus, 0, {}, threads, own, rows));
  for (LoadedShard& shard : shards) TRY(NameHeldOutLabels(setup.meaning.target, &shard.set));
  return shards;
}

// By worker 0.
Status ReadHeldOut(const WorkerSetup& setup, Data* data) {
  if (setup.index != 0) return Status::Ok();
  if (!setup.held_out.test.empty()) {
    TRY_ASSIGN(data->held_out, ReadAsTrained(setup, setup.held_out.test));
  }
  if (!setup.held_out.validation.empty()) {
    TRY_ASSIGN(data->validation, ReadAsTrained(setup, setup.held_out.validation));
  }
  return Status::Ok();
}

// Where threads were not asked for: those that the machine allows, but one alone for little data. A
// few hundred examples are trained faster than threads meet, so that each thread's part would be
// learnt as a whole after another's.
Result<int64_t> ThreadsFor(const WorkerSetup& setup) {
  if (setup.params.threads > 0) return setup.params.threads;
  if (setup.default_threads == 1) return int64_t{1};
  TRY_ASSIGN(const data::Corpus corpus, OpenExamples(setup.sources, setup.format));
  const uint64_t own = corpus.stored_bytes() / static_cast<uint64_t>(setup.workers);
  return std::clamp(static_cast<int64_t>(own / kThreadBytes), int64_t{1}, setup.default_threads);
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

bool IsResumed(const std::vector<Position>& from) {
  return std::any_of(from.begin(), from.end(),
                     [](const Position& at) { return !(at == Position{}); });
}

// How many epochs the model has learnt for, and those of the model that it continues.
void AddEpochs(const WorkerSetup& setup, const std::vector<EpochQuality>& curve,
               const WorkerOutcome& outcome, json::object* metadata) {
  const uint64_t last = curve.empty() ? 0 : curve.back().epoch;
  (*metadata)["training"].as_object()["epochs"] =
      outcome.best_epoch > 0 ? outcome.best_epoch : last;
  const BaseModel* const base = setup.meaning.base;
  if (base == nullptr) return;
  (*metadata)["from"] = {{"model", base->path}, {"digest", base->digest}, {"epochs", base->epochs}};
}

json::object MetadataOf(const WorkerSetup& setup, const Training& training,
                        const WorkerOutcome& outcome, const model::FactorModel& model) {
  json::object parameters;
  for (const auto& [name, text] : setup.parameters) parameters[name] = text;
  json::array epochs;
  for (const EpochQuality& quality : training.curve()) {
    json::object epoch{{"epoch", quality.epoch}, {"train_loss", quality.train_loss}};
    if (quality.held_out.examples > 0) epoch["held_out"] = ToJson(quality.held_out);
    if (quality.validation.examples > 0) epoch["validation"] = quality.validation.loss;
    epochs.push_back(std::move(epoch));
  }
  json::array files;
  for (const std::string& source : setup.sources) files.emplace_back(source);
  uint64_t nonzero = 0;
  for (const float weight : model.linear.weights) nonzero += weight != 0;
  json::object metadata{{"algorithm", setup.algorithm},
                        {"parameters", std::move(parameters)},
                        {"weights",
                         {{"features", model.linear.weights.size()},
                          {"nonzero", nonzero},
                          {"bias", model.linear.bias},
                          {"classes", model.linear.classes()},
                          {"hash_bits", model.linear.hash_bits},
                          {"normalize", model.linear.normalize},
                          {"factors", model.factors},
                          {"fields", model.fields}}},
                        {"epochs", std::move(epochs)},
                        {"data", {{"files", std::move(files)}, {"format", NameOf(setup.format)}}},
                        {"training",
                         {{"examples_per_second", outcome.examples_per_second},
                          {"examples", outcome.job.counted},
                          {"examples_trained", outcome.job.trained},
                          {"workers", setup.workers},
                          {"servers", setup.servers},
                          {"threads", setup.params.threads},
                          {"drained", outcome.drained}}}};
  if (setup.workers > 1) {
    const ExchangeCost& cost = outcome.exchange;
    metadata["training"].as_object()["exchange"] = {{"count", cost.exchanges},
                                                    {"share", cost.exchange},
                                                    {"waiting_share", cost.waited},
                                                    {"bytes_per_example", cost.bytes_per_example}};
  }
  AddEpochs(setup, training.curve(), outcome, &metadata);
  metadata["target"] = ToJson(setup.meaning.target);
  if (setup.meaning.columns)
    metadata["data"].as_object()["columns"] = ToJson(*setup.meaning.columns);
  if (outcome.best_epoch > 0) {
    metadata["best_epoch"] = outcome.best_epoch;
    metadata["validation"] = ToJson(outcome.validation);
  }
  if (outcome.held_out.examples > 0) metadata["held_out"] = ToJson(outcome.held_out);
  if (outcome.assessment.examples > 0) {
    metadata["assessment"] =
        ToJson(outcome.assessment, outcome.held_out.examples > 0 ? "test" : "validation");
  }
  return metadata;
}

// Worker 0, after everybody has trained.
Status Save(const WorkerSetup& setup, const Training& training, const model::FactorModel& model,
            WorkerOutcome* outcome) {
  setup.reporter->Progress({{"phase", "save"}, {"unit", "examples"}});
  TRY_ASSIGN(const model::SavedModel saved,
             SaveModelAt(setup.output, [&](const std::filesystem::path& directory) {
               return model::SaveFactorModel(directory, model,
                                             MetadataOf(setup, training, *outcome, model),
                                             setup.params.text);
             }));
  outcome->digest = saved.digest;
  return Status::Ok();
}

Status CheckFinite(const model::FactorModel& model) {
  const auto finite = [](const auto& values) {
    return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
  };
  if (std::isfinite(model.linear.bias) && finite(model.linear.biases) &&
      finite(model.linear.weights) && finite(model.v))
    return Status::Ok();
  return Diverged("model");
}

// Of the state as the servers have it, or the only worker.
Status FinishModel(const WorkerSetup& setup, Data& data, const Training& training,
                   StateTable* table, WorkerOutcome* outcome) {
  if (setup.workers > 1) {
    TRY(table->Pull(0, 1, StateTable::RowSet::kAll));
    table->Adopt(0, 1);
  }
  const model::FactorModel* const best = training.validation().best_model();
  const model::FactorModel last =
      best != nullptr ? model::FactorModel() : training.Model(setup.params.keep_optimizer);
  const model::FactorModel& model = best != nullptr ? *best : last;
  TRY(CheckFinite(model));
  if (best != nullptr) {
    outcome->best_epoch = training.validation().state().best_epoch;
    for (const EpochQuality& epoch : training.curve()) {
      if (epoch.epoch == outcome->best_epoch) outcome->validation = epoch.validation;
    }
  }
  const bool tested = !data.held_out.empty();
  const std::vector<LoadedShard>& assessed = tested ? data.held_out : data.validation;
  if (!assessed.empty()) {
    const Quality quality =
        MeasureModel(model, setup.meaning.target, assessed, &outcome->assessment);
    if (std::isnan(quality.loss)) return Diverged("held-out loss");
    if (tested) outcome->held_out = quality;
  }
  return Save(setup, training, model, outcome);
}

// Pages of the state of features that rows name: others are never written.
uint64_t PagesOf(const std::vector<LoadedShard>& shards, uint64_t feature_bytes,
                 uint64_t features) {
  std::vector<bool> written(features * feature_bytes / kPage + 1);
  uint64_t pages = 0;
  for (const LoadedShard& shard : shards) {
    for (size_t i = 0; i < shard.set.features.size(); ++i) {
      const uint64_t begin = shard.set.features.data()[i] * feature_bytes;
      for (uint64_t page = begin / kPage; page <= (begin + feature_bytes - 1) / kPage; ++page) {
        pages += !written[page];
        written[page] = true;
      }
    }
  }
  return pages;
}

// Features of the state: of several classes that of each and its bias (softmax_learner.h).
uint64_t StateFeatures(const WorkerSetup& setup) {
  const uint64_t features = setup.share.extent.features;
  const uint64_t classes = setup.learner->classes();
  return classes == 1 ? features : (features + 1) * classes;
}

void UseFeatures(const WorkerSetup& setup, const Data& data, StateTable* table) {
  const uint32_t classes = setup.learner->classes();
  for (const LoadedShard& shard : data.train) {
    const std::span<const uint32_t> features{shard.set.features.data(), shard.set.features.size()};
    if (classes == 1) {
      table->Use(features);
      continue;
    }
    std::vector<uint32_t> all;
    for (const uint32_t feature : features) {
      all.clear();
      for (uint32_t c = 0; c < classes; ++c) all.push_back(feature * classes + c);
      table->Use(all);
    }
  }
  std::vector<uint32_t> biases;
  for (uint32_t c = 0; classes > 1 && c < classes; ++c)
    biases.push_back(static_cast<uint32_t>(setup.share.extent.features * classes + c));
  table->Use(biases);
}

// The state of the features, twice more for exchanges with the servers, and the model that is made
// of it in the end, against the memory that is free. Where all of it does not fit, only what will
// be written counts: of hashed features most do not exist.
Status CheckFits(const WorkerSetup& setup, const Data& data) {
  const uint64_t features = StateFeatures(setup);
  const uint64_t state = setup.learner->width() * sizeof(float);
  const bool exchanges = setup.workers > 1 || setup.checkpoints;
  const uint64_t copies = exchanges ? 3 : 1;
  const uint64_t weights = features * sizeof(float);
  const char* const advice = "hash the features to fewer (hash_bits), or take fewer factors";
  // Half of the state is the optimizer's, of which a copy may be saved; the other half makes the
  // model.
  const uint64_t saved = setup.params.keep_optimizer ? 2 : 1;
  const uint64_t mapped = copies * features * state + saved * features * state / 2 + weights;
  TRY(CheckMemory(mapped, FreeAddressSpace(), advice));
  const uint64_t free = FreeMemory();
  if (mapped <= free) return Status::Ok();
  // The last exchange brings all rows of the servers.
  const bool all = setup.workers > 1 && setup.index == 0;
  const uint64_t written =
      all ? features * state
          : std::min(features * state, PagesOf(data.train, state * setup.learner->classes(),
                                               setup.share.extent.features) *
                                           kPage);
  return CheckMemory(copies * written + saved * written / 2 + weights, free, advice);
}

// What a model that is continued decides of the data.
Status UseBase(const BaseModel& base, WorkerSetup* setup) {
  TRY(CheckSameFormat(base.path, base.columns, NameOf(setup->format)));
  if (base.target.loss.kind != setup->meaning.target.loss.kind) {
    return InvalidArgument(fmt::format("loss: got {}, expected {} as in the model {}",
                                       NameOf(setup->meaning.target.loss.kind),
                                       NameOf(base.target.loss.kind), base.path));
  }
  setup->meaning = {base.columns, base.target, &base};
  setup->params.trained = base.columns;
  setup->params.continues = base.columns.has_value();
  setup->params.hash_bits = base.model.linear.hash_bits;
  return Status::Ok();
}

// The data may have features that the model has not, but no more fields.
Status ExtendBase(WorkerSetup* setup) {
  const model::FactorModel& model = setup->meaning.base->model;
  FeatureExtent& extent = setup->share.extent;
  extent.features = std::max(extent.features, model.linear.features());
  if (!setup->params.keep_fields) return Status::Ok();
  if (extent.fields > model.fields) {
    return InvalidArgument(
        fmt::format("the data has fields up to {}, expected less than {} as in the model {} that "
                    "is continued",
                    extent.fields - 1, model.fields, setup->meaning.base->path));
  }
  extent.fields = model.fields;
  return Status::Ok();
}

Status NoExamples(data::ExampleFormat format) {
  const std::string expected = data::IsTable(format)
                                   ? fmt::format(
                                         "expected rows of {} with a label and a value in another "
                                         "column; a line with the columns' names is no row",
                                         NameOf(format))
                                   : "expected lines of `LABEL NUMBER:VALUE …`";
  return InvalidArgument(fmt::format(
      "the training data holds no example with a feature; {} (docs/formats/examples.md)",
      expected));
}

Result<WorkerOutcome> TrainAndSave(const WorkerSetup& setup, const DatasetSummary& agreed,
                                   Data& data, std::vector<Position> from) {
  const uint64_t features = setup.share.extent.features;
  TRY(CheckFits(setup, data));
  TRY_ASSIGN(
      const std::unique_ptr<StateTable> table,
      StateTable::Make(setup.client, StateFeatures(setup), setup.learner, setup.params.simd));
  if (setup.workers > 1) UseFeatures(setup, data, table.get());
  table->ShareWith(setup.workers);
  // A life before this one, or the checkpoint, left its state with the servers.
  const bool resumed = IsResumed(from);
  if (resumed) TRY(table->Connect());
  if (setup.meaning.base != nullptr && !resumed) TRY(BeginFromBase(setup, table.get()));
  for (auto* const shards : {&data.held_out, &data.validation}) {
    for (LoadedShard& shard : *shards) DropFeaturesFrom(features, &shard.set);
  }

  Training training(setup, data.train, data.held_out, data.validation, table.get());
  const TimePoint begin = RealClock::Get()->Now();
  TRY(training.Run(std::move(from)));
  const double seconds = std::chrono::duration<double>(RealClock::Get()->Now() - begin).count();
  WorkerOutcome outcome;
  outcome.examples = training.examples();
  outcome.drained = training.drained();
  if (setup.workers > 1) outcome.exchange = training.MeasureExchange();
  if (!training.curve().empty()) outcome.train_loss = training.curve().back().train_loss;
  const double all = static_cast<double>(outcome.examples) * setup.workers;  // taken to be alike
  outcome.examples_per_second = seconds > 0 ? all / seconds : 0;
  WorkerSetup ended = setup;  // where validation has decided when
  ended.params.epochs = static_cast<int64_t>(training.validation().epochs());
  JobProgress heard(ended, agreed);
  TRY(AwaitOthers(setup, outcome.drained, training.Positions(), &heard));
  if (setup.index != 0) return outcome;
  // An older model is better than one that has seen nothing.
  if (outcome.drained && outcome.examples == 0 && !resumed)
    return Cancelled("stopped before anything was trained; nothing is saved");

  outcome.job.trained = setup.workers == 1 ? training.trained() : heard.trained();
  outcome.job.epochs = training.validation().epochs();
  outcome.job.counted = agreed.total();
  const Status conserved = CheckTrainedCount(outcome.job, "the job");
  outcome.drained = outcome.drained || (setup.stop->load() && !conserved.ok());
  if (!outcome.drained) TRY(conserved);
  TRY(FinishModel(setup, data, training, table.get(), &outcome));
  return outcome;
}

}  // namespace

Result<WorkerOutcome> RunWorker(const WorkerSetup& given) {
  WorkerSetup setup = given;
  if (setup.index == 0) TRY(CheckOutput(*setup.client, setup.index, setup.output));
  SharedBlobs shared_blobs(setup.client);
  setup.shared_blobs = &shared_blobs;
  TRY_ASSIGN(setup.params.threads, ThreadsFor(setup));
  if (setup.params.deterministic) setup.params.threads = 1;
  if (data::IsTable(setup.format) && setup.params.hash_bits == 0)
    setup.params.hash_bits = kCsvHashBits;
  setup.meaning.target.loss = LossFor(setup.params);
  std::optional<BaseModel> base;
  if (!setup.params.from.empty()) {
    TRY_ASSIGN(base, ReadBaseModel(setup.params.from));
    TRY(UseBase(*base, &setup));
  }
  TRY_ASSIGN(std::vector<Position> from, StartingPositions(setup));
  // A life that goes on keeps the number of threads it began with: the shards depend on it.
  setup.params.threads = static_cast<int64_t>(from.size());
  TRY_ASSIGN(setup.normalization, NormalizationOf(setup.params.normalize, setup.format));
  TRY_ASSIGN(Data data, ReadData(setup));
  TRY_ASSIGN(const DatasetSummary agreed, CollectPartSummaries(setup, IsResumed(from)));
  setup.params.validates = !setup.params.validation.empty() || !setup.held_out.validation.empty();
  if (setup.params.epochs == 0) {
    setup.params.epochs = setup.params.validates ? kMostValidatedEpochs
                                                 : EpochsFor(agreed.total(), setup.normalization);
  }
  TRY(GiveLabels(setup, agreed, given.params.hash_bits != 0, &data));
  TRY(WeighExamples(setup, agreed, &data.train));
  TRY(ScaleColumns(setup, agreed, &data));
  TRY(ReadHeldOut(setup, &data));
  setup.share.extent = WithDefaults(setup.params, agreed.extent);
  if (setup.meaning.base != nullptr) TRY(ExtendBase(&setup));
  if (setup.share.extent.features == 0 || agreed.total() == 0) return NoExamples(setup.format);
  std::unique_ptr<Learner> own_learner;
  if (setup.params.keep_fields) {
    TRY_ASSIGN(own_learner, setup.learner->ForFields(setup.share.extent.fields));
    setup.learner = own_learner.get();
  }
  std::optional<SoftmaxLearner> of_classes;
  if (const size_t classes = ClassesOf(setup); classes > 1) {
    const uint64_t features = setup.share.extent.features;
    if ((features + 1) * classes >= model::kMaxLinearWeights) {
      return InvalidArgument(fmt::format(
          "{} classes of {} features are more than 2^32 weights; hash the features to fewer "
          "(hash_bits)",
          classes, features));
    }
    setup.learner = &of_classes.emplace(setup.learner, static_cast<uint32_t>(classes), features);
  }
  Result<WorkerOutcome> outcome = TrainAndSave(setup, agreed, data, std::move(from));
  if (outcome.ok()) TRY(setup.client->Leave());
  return outcome;
}

}  // namespace shoal::learn::sparse
