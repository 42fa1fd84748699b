#include "learn/sparse/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <thread>

#include "data/examples/classes.h"
#include "data/formats/record_reader.h"

#include "learn/sparse/dataset.h"
#include "learn/sparse/params.h"
#include "learn/sparse/prediction/model_reading.h"
#include "learn/sparse/softmax_learner.h"

namespace shoal::learn::sparse {
namespace {

// What one thread has read and predicted. Labels of two classes are as they are, those that are
// numbers on the model's scale; NaN: missing.
struct Part {
  std::vector<Scored> scored;
  std::vector<ScoredClass> scored_classes;
  std::vector<float> probabilities;  // of several classes
  std::vector<std::string> keys;
  bool labelled = true;  // all examples
  Scratch scratch;
  Status status;
};

// What predictions are made with.
struct Predictor {
  const model::FactorModel& model;
  const Target& target;
  const data::ExampleOptions& options;

  // The number of the class of a label; the number of classes if it is none of them.
  uint32_t ClassOf(float label) const {
    const size_t classes = model.linear.classes();
    if (target.classes.empty()) {  // csv's, which are read by name
      const bool known = label >= 0 && label < static_cast<float>(classes);
      return static_cast<uint32_t>(known ? label : static_cast<float>(classes));
    }
    const std::string name = fmt::format("{}", label + 0.0f);
    const float number = data::LabelOf(name, target.classes);
    return static_cast<uint32_t>(std::isnan(number) ? static_cast<float>(classes) : number);
  }

  void PredictClasses(const Row& row, float label, Part* part) const {
    const size_t classes = model.linear.classes();
    const size_t begin = part->probabilities.size();
    part->probabilities.resize(begin + classes);
    float* const margins = part->probabilities.data() + begin;
    ClassMargins(model, row, &part->scratch, margins);
    const uint32_t number = ClassOf(label);
    part->labelled = part->labelled && number < classes;
    part->scored_classes.push_back(ScoreClass({margins, classes}, number));
    const float all = LogSumExp(margins, classes);
    for (size_t c = 0; c < classes; ++c) margins[c] = std::exp(margins[c] - all);
  }

  void PredictSet(const data::ExampleSet& set, const std::vector<float>& scales, Part* part) const {
    for (size_t i = 0; i < set.size(); ++i) {
      const Row row = RowOf(set, i, scales[i]);
      float label = set.labels[i];
      if (model.linear.classes() > 1) {
        PredictClasses(row, label, part);
        continue;
      }
      if (target.loss.predicts_numbers())
        label = target.scale.Scaled(set.label_offset + static_cast<double>(label));
      part->labelled = part->labelled && !std::isnan(label);
      part->scored.push_back({Margin(model, row, &part->scratch), label});
    }
    part->keys.insert(part->keys.end(), set.keys.begin(), set.keys.end());
  }

  Status PredictShard(const data::Corpus& corpus, const data::Shard& shard, Part* part) const {
    data::ExampleReader reader(corpus, shard, options);
    data::ExampleSet set;
    for (;;) {
      set.Clear();
      TRY_ASSIGN(const bool more, reader.Read(&set));
      if (!more) return Status::Ok();
      const float scale = options.csv != nullptr ? options.csv->schema.row_scale : 1.0f;
      const std::vector<float> scales = ScalesOf(set, model.linear.normalize, scale);
      DropFeaturesFrom(model.linear.features(), &set);
      PredictSet(set, scales, part);
    }
  }
};

// Labels −1 become 0. False if one is no class.
bool MakeBinary(std::vector<Scored>& scored) {
  for (Scored& one : scored) {
    if (one.label == -1) one.label = 0;
    if (one.label != 0 && one.label != 1) return false;
  }
  return true;
}

// The format that is asked for; else of tables that by the first file's name, and the training
// data's.
Result<data::ExampleFormat> FormatFor(const std::string& asked, data::ExampleFormat trained,
                                      const std::string& source) {
  if (!asked.empty()) return FormatOf(asked);
  const auto named = FormatOf(data::NameOf(data::FormatOfPath(source)));
  const bool table = data::IsTable(trained) && named.ok() && data::IsTable(*named);
  return table ? *named : trained;
}

std::vector<std::string> MissingColumns(const data::CsvSchema& trained,
                                        const data::CsvColumns& here) {
  std::vector<std::string> missing;
  for (const std::string& name : trained.names) {
    const std::vector<std::string>& names = here.schema.names;
    const bool found = std::find(names.begin(), names.end(), name) != names.end() &&
                       std::find(here.absent.begin(), here.absent.end(), name) == here.absent.end();
    const bool feature = name != trained.label && name != trained.weight && name != trained.key;
    if (!found && feature) missing.push_back(name);
  }
  return missing;
}

// Joins what the threads have, in order.
Status Collect(std::vector<Part>* parts, Part* all) {
  for (Part& part : *parts) {
    TRY(part.status);
    all->scored.insert(all->scored.end(), part.scored.begin(), part.scored.end());
    all->scored_classes.insert(all->scored_classes.end(), part.scored_classes.begin(),
                               part.scored_classes.end());
    all->probabilities.insert(all->probabilities.end(), part.probabilities.begin(),
                              part.probabilities.end());
    all->keys.insert(all->keys.end(), std::make_move_iterator(part.keys.begin()),
                     std::make_move_iterator(part.keys.end()));
    all->labelled = all->labelled && part.labelled;
    part = {};
  }
  return Status::Ok();
}

void Measure(Part* all, bool has_labels, size_t classes, Predictions* predictions) {
  if (!has_labels || predictions->examples == 0) return;
  const Target& target = predictions->target;
  if (target.loss.kind == LossKind::kSoftmax) {
    if (!all->labelled) return;
    predictions->quality = MeasureQuality(all->scored_classes, classes);
    if (std::isfinite(predictions->quality->loss))
      predictions->assessment = AssessPredictions(all->scored_classes, classes);
    return;
  }
  const bool known = target.loss.predicts_numbers() ? all->labelled : MakeBinary(all->scored);
  if (!known) return;
  predictions->quality = MeasureQuality(target, all->scored);
  if (std::isfinite(predictions->quality->loss))
    predictions->assessment = AssessPredictions(target, all->scored);
}

}  // namespace

std::string Predictions::ClassOf(uint64_t example) const {
  if (target.loss.predicts_numbers()) return "";
  if (target.loss.kind == LossKind::kSoftmax) {
    const auto begin =
        probabilities.begin() + static_cast<std::ptrdiff_t>(example * classes.size());
    const auto end = begin + std::ssize(classes);
    return classes[static_cast<size_t>(std::max_element(begin, end) - begin)];
  }
  const bool yes =
      target.loss.kind == LossKind::kHinge ? values[example] > 0 : probabilities[example] > 0.5f;
  if (classes.size() == 2) return classes[yes ? 1 : 0];
  return yes ? "1" : "0";
}

Result<Predictions> Predict(const model::FactorModel& model, const json::object& metadata,
                            const std::vector<std::string>& sources,
                            const PredictOptions& options) {
  TRY_ASSIGN(ModelReading trained, ReadingOf(model, metadata));
  TRY_ASSIGN(const data::ExampleFormat format,
             FormatFor(options.format, trained.format, sources.empty() ? "" : sources.front()));
  TRY_ASSIGN(const data::Corpus corpus, OpenExamples(sources, format));
  CommonParams& params = trained.params;
  if (!data::IsTable(format)) params.trained.reset();
  params.key = options.key;
  if (params.key.empty() && params.trained) params.key = params.trained->key;
  Predictions predictions;
  predictions.target = std::move(trained.target);
  predictions.classes = std::move(trained.classes);
  predictions.positive = std::move(trained.positive);
  const Target& target = predictions.target;
  const size_t classes = model.linear.classes();
  const bool several = target.loss.kind == LossKind::kSoftmax;
  TRY_ASSIGN(const data::ExampleOptions reading, OptionsOf(params, format, corpus, false));
  const Predictor predictor{model, target, reading};
  std::vector<Part> parts(options.threads);
  std::vector<std::thread> running;
  for (uint64_t i = 0; i < options.threads; ++i) {
    running.emplace_back([&, i] {
      const Result<data::Shard> shard = corpus.MakeShard(i, options.threads);
      parts[i].status =
          shard.ok() ? predictor.PredictShard(corpus, *shard, &parts[i]) : shard.status();
    });
  }
  for (std::thread& thread : running) thread.join();
  Part all;
  TRY(Collect(&parts, &all));
  if (reading.csv != nullptr && params.trained)
    predictions.missing_columns = MissingColumns(*params.trained, *reading.csv);
  if (reading.csv != nullptr && reading.csv->key != data::CsvColumns::kNone)
    predictions.key_column = reading.csv->schema.names[reading.csv->key];
  predictions.examples = several ? all.scored_classes.size() : all.scored.size();
  predictions.keys = std::move(all.keys);
  predictions.probabilities = std::move(all.probabilities);
  for (const Scored& one : all.scored) {
    if (target.loss.kind == LossKind::kLogistic) {
      predictions.probabilities.push_back(Probability(one.margin));
    } else {
      predictions.values.push_back(target.loss.predicts_numbers()
                                       ? target.ValueOf(one.margin)
                                       : static_cast<double>(one.margin));
    }
  }
  const bool labelled = reading.csv == nullptr || reading.csv->label != data::CsvColumns::kNone;
  Measure(&all, labelled, classes, &predictions);
  return predictions;
}

}  // namespace shoal::learn::sparse
