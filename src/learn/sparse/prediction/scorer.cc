#include "learn/sparse/prediction/scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "learn/sparse/dataset.h"
#include "learn/sparse/softmax_learner.h"

namespace shoal::learn::sparse {

Result<Scorer> Scorer::Make(model::FactorModel model, const json::object& metadata) {
  Scorer scorer;
  TRY_ASSIGN(scorer.reading_, ReadingOf(model, metadata));
  TRY_ASSIGN(scorer.options_, RowOptionsOf(scorer.reading_));
  scorer.model_ = std::move(model);
  if (const data::CsvColumns* const csv = scorer.options_.csv.get(); csv != nullptr) {
    for (size_t i = 0; i < csv->columns.size(); ++i) {
      if (csv->IsFeature(i)) scorer.columns_.push_back(csv->schema.names[i]);
    }
  }
  return scorer;
}

const char* Scorer::output() const {
  const Loss& loss = reading_.target.loss;
  if (loss.kind == LossKind::kSoftmax) return "probabilities";
  if (loss.kind == LossKind::kLogistic) return "probability";
  return loss.predicts_numbers() ? "value" : "margin";
}

void Scorer::ScoreOne(const Row& row, Scratch* scratch, double* to) const {
  const Target& target = reading_.target;
  const size_t classes = model_.linear.classes();
  if (classes > 1) {
    std::vector<float>& margins = scratch->weights;
    if (margins.size() < classes) margins.resize(classes);
    ClassMargins(model_, row, scratch, margins.data());
    const float all = LogSumExp(margins.data(), classes);
    for (size_t c = 0; c < classes; ++c) to[c] = static_cast<double>(std::exp(margins[c] - all));
    return;
  }
  const float margin = Margin(model_, row, scratch);
  if (target.loss.kind == LossKind::kLogistic) {
    // The logistic function hides infinite margins, which no finite weights and values should give.
    *to = std::isfinite(margin) ? static_cast<double>(Probability(margin)) : std::nan("");
  } else {
    *to = target.loss.predicts_numbers() ? target.ValueOf(margin) : static_cast<double>(margin);
  }
}

Result<Scores> Scorer::Score(data::ExampleSet* set, Scratch* scratch) const {
  const float scale = options_.csv != nullptr ? options_.csv->schema.row_scale : 1.0f;
  const std::vector<float> scales = ScalesOf(*set, model_.linear.normalize, scale);
  DropFeaturesFrom(model_.linear.features(), set);
  Scores scores;
  scores.width = model_.linear.classes();
  scores.values.resize(set->size() * scores.width);
  for (size_t i = 0; i < set->size(); ++i) {
    double* const to = scores.values.data() + i * scores.width;
    ScoreOne(RowOf(*set, i, scales[i]), scratch, to);
    if (std::all_of(to, to + scores.width, [](double value) { return std::isfinite(value); }))
      continue;
    return InvalidArgument(fmt::format(
        "instance {}: its values are so large that the prediction is no finite number", i));
  }
  return scores;
}

std::string Scorer::ClassOf(const Scores& scores, size_t i) const {
  const Loss& loss = reading_.target.loss;
  if (loss.predicts_numbers()) return "";
  const auto begin = scores.values.begin() + static_cast<std::ptrdiff_t>(i * scores.width);
  if (loss.kind == LossKind::kSoftmax) {
    const auto end = begin + static_cast<std::ptrdiff_t>(scores.width);
    return reading_.classes[static_cast<size_t>(std::max_element(begin, end) - begin)];
  }
  const bool yes = *begin > (loss.kind == LossKind::kHinge ? 0 : 0.5);
  if (reading_.classes.size() == 2) return reading_.classes[yes ? 1 : 0];
  return yes ? "1" : "0";
}

}  // namespace shoal::learn::sparse
