// The scale of labels that are numbers: a training sees (y − mean) · factor, or for counts y /
// mean, so that its rates suit every unit and origin. Kept in model.json's `target`, with the loss.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "data/examples/column_scaling.h"
#include "learn/sparse/objective/loss.h"

namespace shoal::learn::sparse {

struct LabelScale {
  double mean = 0;
  double deviation = 1;  // of poisson the mean, and mean is 0
  bool operator==(const LabelScale&) const = default;

  float Scaled(double label) const { return static_cast<float>((label - mean) / deviation); }
};

// From the labels of the whole data. FailedPrecondition if they are all alike: nothing is to be
// learnt.
Result<LabelScale> LabelScaleOf(LossKind kind, const data::ColumnSummary& labels);

// What a model predicts.
struct Target {
  Loss loss;
  LabelScale scale;
  std::vector<std::string> classes;  // of softmax on formats other than csv, whose schema has them

  // The predicted number, for a margin of a loss that predicts numbers.
  double ValueOf(float margin) const {
    if (loss.kind != LossKind::kPoisson)
      return scale.mean + scale.deviation * static_cast<double>(margin);
    return scale.deviation * std::exp(static_cast<double>(std::min(margin, kLargestExponent)));
  }
  // By which the loss of scaled labels is that of the labels.
  double loss_unit() const {
    return loss.kind == LossKind::kSquared ? scale.deviation * scale.deviation : scale.deviation;
  }
};

json::object ToJson(const Target& target);
// The logistic loss where model.json has none, as earlier releases wrote it. DataLoss if it is
// malformed.
Result<Target> TargetFromJson(const json::object& metadata);

}  // namespace shoal::learn::sparse
