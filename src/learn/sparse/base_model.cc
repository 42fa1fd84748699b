#include "learn/sparse/base_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

#include "base/file.h"
#include "data/objects/copy_object.h"
#include "data/objects/object_stores.h"
#include "learn/coordination/shared_blobs.h"
#include "learn/sparse/csv_schema_json.h"
#include "learn/sparse/exchange/state_table.h"
#include "learn/sparse/params.h"
#include "learn/sparse/worker.h"
#include "model/save_model.h"

namespace shoal::learn::sparse {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFrom = "from";
constexpr auto kFromPoll = std::chrono::milliseconds(5);

// Parameters of one training, which the next does not inherit.
constexpr std::array<std::string_view, 13> kOfTheRun = {
    "from", "epochs",        "validation", "patience",       "fold", "threads",       "seed",
    "simd", "deterministic", "rounds",     "exchange_share", "text", "keep_optimizer"};
// Of which another value would need another model.
constexpr std::array<std::string_view, 11> kOfTheModel = {
    "loss",     "quantile",    "normalize", "bias",    "hash_bits", "label",
    "positive", "categorical", "weight",    "factors", "fields"};

template <typename Names>
bool Has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A directory with the files of a model, of which those of a store were copied.
struct LocalModel {
  fs::path directory;
  std::optional<TempDir> copy;
};

Result<LocalModel> Fetch(const std::string& path, bool whole) {
  if (!data::IsRemoteUri(path)) return LocalModel{path, std::nullopt};
  TRY_ASSIGN(TempDir room, TempDir::Create("shoal-from"));
  const std::string folder = path.ends_with('/') ? path : path + "/";
  data::ObjectStores stores;
  TRY(data::CopyObject(&stores, folder + "model.json", (room.path() / "model.json").string())
          .status());
  if (whole) {
    TRY_ASSIGN(const json::object metadata, model::ReadModelMetadata(room.path()));
    const json::object* const files = FindObject(metadata, "files");
    for (const char* name : {"weights.bin", "factors.bin", "optimizer.bin"}) {
      if (files == nullptr || !files->contains(name)) continue;
      TRY(data::CopyObject(&stores, folder + name, (room.path() / name).string()).status());
    }
  }
  const fs::path directory = room.path();
  return LocalModel{directory, std::move(room)};
}

Result<json::object> MetadataOf(const LocalModel& local, const std::string& path) {
  Result<json::object> metadata = model::ReadModelMetadata(local.directory);
  if (metadata.status().code() == Code::kNotFound) {
    return NotFound(fmt::format(
        "from: there is no model in {}; expected the --output of `shoal train linear`, logistic, "
        "fm or ffm",
        path));
  }
  TRY(metadata.status());
  if (!metadata->contains("weights")) {
    return InvalidArgument(fmt::format(
        "from: {} holds word vectors, whose training cannot be continued; expected a linear model "
        "or a factorization machine",
        path));
  }
  return metadata;
}

std::string TextIn(const json::object& object, std::string_view part, std::string_view name) {
  const json::object* const inner = FindObject(object, part);
  return inner == nullptr ? "" : GetStringOr(*inner, name, "");
}

int64_t NumberIn(const json::object& object, std::string_view part, std::string_view name) {
  const json::object* const inner = FindObject(object, part);
  return inner == nullptr ? 0 : GetIntOr(*inner, name, 0);
}

// linear and logistic are one algorithm.
std::string_view FamilyOf(std::string_view algorithm) {
  return algorithm == "logistic" ? "linear" : algorithm;
}

// What `normalize` comes to.
std::string NormalizationText(const std::string& text, const std::string& format) {
  const Result<data::ExampleFormat> known = FormatOf(format);
  if (!known.ok()) return text;
  const Result<Normalization> kind = NormalizationOf(text, *known);
  return kind.ok() ? std::to_string(static_cast<int>(*kind)) : text;
}

// Compares the given text of a parameter with what a model was trained with.
class TrainedParams {
 public:
  TrainedParams(const json::object& metadata, std::optional<data::CsvSchema> columns)
      : metadata_(metadata), columns_(std::move(columns)) {}

  std::string SavedText(std::string_view name) const {
    return TextIn(metadata_, "parameters", name);
  }

  // What the model has of a parameter, for a message.
  std::string Had(std::string_view name) const {
    if (name == "hash_bits") return std::to_string(NumberIn(metadata_, "weights", name));
    if (columns_ && name == "label") return columns_->label;
    if (columns_ && name == "positive" && columns_->classes.size() == 2)
      return columns_->classes[1];
    return SavedText(name);
  }

  bool Same(const Param& param, const std::string& given) const {
    const std::string saved = SavedText(param.name);
    if (given == saved || given == Had(param.name)) return true;
    if (param.name == "normalize") {
      const std::string format = TextIn(metadata_, "data", "format");
      return NormalizationText(given, format) == NormalizationText(saved, format);
    }
    const std::span<const Param> one(&param, 1);
    const std::string name(param.name);
    const auto left = ParseParams(one, {{name, {given, 0, 0}}}, "");
    const auto right = ParseParams(one, {{name, {Had(name), 0, 0}}}, "");
    return !left.ok() || (right.ok() && *left == *right);  // a malformed one is told elsewhere
  }

 private:
  const json::object& metadata_;
  const std::optional<data::CsvSchema> columns_;
};

// The first that `among` has not, but for the columns that are no features; null: it has all.
const std::string* FirstMissing(const std::vector<std::string>& names,
                                const std::vector<std::string>& among,
                                const data::CsvSchema& trained) {
  for (const std::string& name : names) {
    if (!Has(among, name) && name != trained.key) return &name;
  }
  return nullptr;
}

}  // namespace

std::string FromIn(const LearnValues& learn) {
  const auto found = learn.find(kFrom);
  return found == learn.end() ? "" : found->second.text;
}

Result<json::object> ReadBaseMetadata(const std::string& path) {
  const Result<LocalModel> local = Fetch(path, false);
  if (!local.ok()) return local.status().With("from");
  return MetadataOf(*local, path);
}

Result<BaseModel> ReadBaseModel(const std::string& path) {
  const Result<LocalModel> local = Fetch(path, true);
  if (!local.ok()) return local.status().With("from");
  TRY_ASSIGN(const json::object metadata, MetadataOf(*local, path));
  BaseModel base;
  base.path = path;
  TRY_ASSIGN(base.target, TargetFromJson(metadata));
  TRY_ASSIGN(base.columns, CsvSchemaFromJson(metadata));
  base.format = TextIn(metadata, "data", "format");
  base.epochs = static_cast<uint64_t>(std::max<int64_t>(
      0, NumberIn(metadata, "training", "epochs") + NumberIn(metadata, "from", "epochs")));
  if (const json::object* const files = FindObject(metadata, "files"); files != nullptr)
    base.digest = TextIn(*files, "weights.bin", "sha256");
  TRY_ASSIGN(base.model, model::ReadFactorModel(local->directory));
  const Status state = model::ReadOptimizerState(local->directory, &base.model);
  if (state.code() == Code::kNotFound) {
    return FailedPrecondition(fmt::format(
        "from: {} was saved without optimizer.bin, the state of its optimizer (by an earlier "
        "release, or with keep_optimizer false), and cannot be continued; train it again",
        path));
  }
  TRY(state);
  return base;
}

Result<LearnValues> ContinueLearn(std::span<const Param> table, const LearnValues& learn,
                                  std::string_view file, std::string_view algorithm,
                                  const json::object& metadata) {
  const std::string path = FromIn(learn);
  if (path.empty()) return learn;
  const std::string trained_by = GetStringOr(metadata, "algorithm", "");
  if (FamilyOf(trained_by) != FamilyOf(algorithm)) {
    return InvalidArgument(fmt::format("from: {} was trained by {}, expected a model of {}", path,
                                       trained_by.empty() ? "another algorithm" : trained_by,
                                       algorithm));
  }
  TRY_ASSIGN(std::optional<data::CsvSchema> columns, CsvSchemaFromJson(metadata));
  const TrainedParams trained(metadata, std::move(columns));
  LearnValues all = learn;
  LearnValues given;  // by the table's names
  for (const auto& [name, value] : learn) {
    const Param* const param = FindParam(table, name);
    if (param == nullptr || Has(kOfTheRun, param->name)) continue;
    if (value.text == "auto") {  // as the model has it
      all.erase(name);
      continue;
    }
    given[std::string(param->name)] = value;
    if (!Has(kOfTheModel, param->name) || trained.Same(*param, value.text)) continue;
    const std::string had = trained.Had(param->name);
    return InvalidArgument(fmt::format(
        "{}got {}, expected {} as in the model {} that is continued; leave it out, or train a new "
        "model without --from",
        FormatPlace(file, value, param->name), value.text, had.empty() ? "none" : had, path));
  }
  for (const Param& param : table) {
    const std::string name(param.name);
    const std::string saved = trained.SavedText(name);
    if (Has(kOfTheRun, param.name) || given.contains(name) || saved.empty()) continue;
    all[name] = {saved, 0, 0};
  }
  return all;
}

Status CheckSameFormat(const std::string& path, const std::optional<data::CsvSchema>& trained,
                       std::string_view data_format) {
  if (trained.has_value() == (data_format == "csv")) return Status::Ok();
  return InvalidArgument(fmt::format(
      "data format: got {}, expected {} as in the data of the model {} that is continued",
      data_format, trained ? "csv" : "libsvm or libffm", path));
}

Status CheckSameColumns(const std::string& path, const data::CsvSchema& trained,
                        const data::CsvSchema& here) {
  if (const std::string* const name = FirstMissing(trained.names, here.names, trained)) {
    return InvalidArgument(fmt::format(
        "data: there is no column {}, which the model {} was trained on; give data with the same "
        "columns, or train a new model without --from",
        *name, path));
  }
  if (const std::string* const name = FirstMissing(here.names, trained.names, trained)) {
    return InvalidArgument(fmt::format(
        "data: got a column {}, which the model {} was not trained on; remove it, or train a new "
        "model without --from",
        *name, path));
  }
  return Status::Ok();
}

void KeepOptimizerState(const Learner& learner, const float* state, const float* bias,
                        model::FactorModel* model) {
  const std::vector<Slot>& slots = learner.slots();
  const uint64_t width = learner.width();
  model::OptimizerState& kept = model->optimizer;
  const auto keep = [&](const float* own, float* to) {
    const float squares = std::max(own[slots[0].squares], 0.0f);
    to[0] = WeightOf(slots[0], own[slots[0].value], squares);
    to[1] = squares;
  };
  const uint64_t weights = model->linear.weights.size();
  kept.width = static_cast<uint32_t>(slots.size() + 1);
  kept.rows = model::ZeroedFloats(weights * kept.width);
  kept.biases.assign(2 * model->linear.classes(), 0);
  for (uint64_t c = 0; c < model->linear.classes(); ++c)
    keep(learner.classes() > 1 ? state + (weights + c) * width : bias, kept.biases.data() + 2 * c);
  for (uint64_t i = 0; i < weights; ++i) {
    const float* const own = state + i * width;
    if (own[slots[0].squares] == 0) continue;  // never seen
    float* const to = kept.rows.data() + i * kept.width;
    keep(own, to);
    for (size_t s = 1; s < slots.size(); ++s) to[1 + s] = std::max(own[slots[s].squares], 0.0f);
  }
}

Status RestoreState(const Learner& learner, const BaseModel& base, uint64_t features, float* state,
                    float* bias) {
  const std::vector<Slot>& slots = learner.slots();
  const model::FactorModel& model = base.model;
  const model::OptimizerState& kept = model.optimizer;
  const uint64_t classes = model.linear.classes();
  if (kept.width != slots.size() + 1 || classes != learner.classes() ||
      model.linear.weights.size() > features * classes) {
    return InvalidArgument(
        fmt::format("from: the features of {} have {} factors for {} classes, expected {} for {}",
                    base.path, model.width(), classes, slots.size() - 1, learner.classes()));
  }
  const uint64_t width = learner.width();
  const auto restore = [&](const float* from, float* own) {
    own[slots[0].value] = ValueOf(slots[0], from[0], from[1]);
    own[slots[0].squares] = from[1];
  };
  for (uint64_t c = 0; c < classes; ++c) {
    restore(kept.biases.data() + 2 * c,
            classes > 1 ? state + (features * classes + c) * width : bias);
  }
  for (uint64_t i = 0; i < model.linear.weights.size(); ++i) {
    const float* const from = kept.rows.data() + i * kept.width;
    if (from[1] == 0) continue;
    float* const own = state + i * width;
    restore(from, own);
    for (size_t s = 1; s < slots.size(); ++s) {
      own[slots[s].value] =
          model.Row(i)[s - 1] - learner.InitialWeight(static_cast<uint32_t>(i), s);
      own[slots[s].squares] = from[1 + s];
    }
  }
  return Status::Ok();
}

Status BeginFromBase(const WorkerSetup& setup, StateTable* table) {
  const auto restore = [&] {
    return RestoreState(*setup.learner, *setup.meaning.base, setup.share.extent.features,
                        table->state(), table->bias());
  };
  if (setup.workers == 1) return restore();
  Result<std::string> done = setup.shared_blobs->Read(kFrom);
  if (done.status().code() == Code::kNotFound && setup.index == 0) {
    // After an earlier life, the servers may have a part of it.
    TRY(table->Connect());
    TRY(restore());
    TRY(table->Store(0, 1));
    return setup.shared_blobs->Publish(kFrom, setup.meaning.base->digest);
  }
  while (done.status().code() == Code::kNotFound) {
    if (setup.stop->load()) return Cancelled("stopped before anything was trained");
    std::this_thread::sleep_for(kFromPoll);
    done = setup.shared_blobs->Read(kFrom);
  }
  TRY(done.status());
  return table->Connect();
}

}  // namespace shoal::learn::sparse
