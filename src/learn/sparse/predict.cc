#include "learn/sparse/predict.h"

#include <algorithm>
#include <thread>

#include "learn/sparse/csv_schema_json.h"
#include "learn/sparse/dataset.h"
#include "learn/sparse/params.h"

namespace shoal::learn::sparse {
namespace {

// What one thread has read and predicted: label and margin as they are.
struct Part {
  std::vector<Scored> scored;
  Scratch scratch;
  Status status;
};

Status PredictShard(const model::FactorModel& model, const data::Corpus& corpus,
                    const data::Shard& shard, const data::ExampleOptions& options, Part* part) {
  data::ExampleReader reader(corpus, shard, options);
  data::ExampleSet set;
  for (;;) {
    set.Clear();
    TRY_ASSIGN(const bool more, reader.Read(&set));
    if (!more) return Status::Ok();
    const float scale = options.csv != nullptr ? options.csv->schema.row_scale : 1.0f;
    const std::vector<float> scales = ScalesOf(set, model.linear.normalize, scale);
    DropFeaturesFrom(model.linear.weights.size(), &set);
    for (size_t i = 0; i < set.size(); ++i) {
      const float margin = Margin(model, RowOf(set, i, scales[i]), &part->scratch);
      part->scored.push_back({margin, set.labels[i]});
    }
  }
}

// Labels −1 become 0. False if one is no class.
bool MakeBinary(std::vector<Scored>& scored) {
  for (Scored& one : scored) {
    if (one.label == -1) one.label = 0;
    if (one.label != 0 && one.label != 1) return false;
  }
  return true;
}

// How the training data was read, as model.json has it.
CommonParams ParamsOf(const json::object& metadata) {
  CommonParams params;
  params.normalize = "none";  // the schema has the columns' scales, if any
  const json::object* const given = FindObject(metadata, "parameters");
  if (given == nullptr) return params;
  params.label = GetStringOr(*given, "label", "");
  params.categorical = GetStringOr(*given, "categorical", "");
  params.delimiter = GetStringOr(*given, "delimiter", params.delimiter);
  params.header = GetStringOr(*given, "header", params.header);
  return params;
}

std::string FormatIn(const json::object& metadata) {
  const json::object* const data = FindObject(metadata, "data");
  return data == nullptr ? "libsvm" : GetStringOr(*data, "format", "libsvm");
}

std::vector<std::string> MissingColumns(const data::CsvSchema& trained,
                                        const data::CsvSchema& here) {
  std::vector<std::string> missing;
  for (const std::string& name : trained.names) {
    const bool found = std::find(here.names.begin(), here.names.end(), name) != here.names.end();
    if (!found && name != trained.label) missing.push_back(name);
  }
  return missing;
}

}  // namespace

Result<Predictions> Predict(const model::FactorModel& model, const json::object& metadata,
                            const std::vector<std::string>& sources,
                            const PredictOptions& options) {
  TRY_ASSIGN(const data::Corpus corpus, data::Corpus::Open(sources));
  TRY_ASSIGN(const data::ExampleFormat format,
             FormatOf(options.format.empty() ? FormatIn(metadata) : options.format));
  CommonParams params = ParamsOf(metadata);
  if (format == data::ExampleFormat::kCsv) {
    TRY_ASSIGN(params.trained, CsvSchemaFromJson(metadata));
  }
  params.hash_bits = model.linear.hash_bits;
  params.keep_fields = model.fields > 0;
  params.fields = model.folds_fields ? model.fields : 0;
  TRY_ASSIGN(const data::ExampleOptions reading, OptionsOf(params, format, corpus, false));
  std::vector<Part> parts(options.threads);
  std::vector<std::thread> running;
  for (uint64_t i = 0; i < options.threads; ++i) {
    running.emplace_back([&, i] {
      const Result<data::Shard> shard = corpus.MakeShard(i, options.threads);
      parts[i].status =
          shard.ok() ? PredictShard(model, corpus, *shard, reading, &parts[i]) : shard.status();
    });
  }
  for (std::thread& thread : running) thread.join();
  std::vector<Scored> scored;
  for (Part& part : parts) {
    TRY(part.status);
    scored.insert(scored.end(), part.scored.begin(), part.scored.end());
    part.scored = {};
  }
  Predictions predictions;
  if (reading.csv != nullptr && params.trained)
    predictions.missing_columns = MissingColumns(*params.trained, reading.csv->schema);
  if (params.trained && !params.trained->classes.empty())
    predictions.positive = params.trained->classes.back();
  predictions.probabilities.reserve(scored.size());
  for (const Scored& one : scored) predictions.probabilities.push_back(Probability(one.margin));
  const bool labelled = reading.csv == nullptr || reading.csv->label != data::CsvColumns::kNone;
  if (labelled && MakeBinary(scored) && !scored.empty())
    predictions.quality = MeasureQuality(scored);
  return predictions;
}

}  // namespace shoal::learn::sparse
