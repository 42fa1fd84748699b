// How good predictions are: for each loss the measures of the field. Pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "learn/sparse/objective/label_scale.h"
#include "learn/sparse/objective/loss.h"

namespace shoal::learn::sparse {

struct Scored {
  float margin = 0;  // of two classes: the logarithm of the predicted odds
  float label = 0;   // as Loss has it
};

// Of several classes.
struct ScoredClass {
  float log_probability = 0;  // of `label`
  uint32_t label = 0;
  uint32_t predicted = 0;
  float confidence = 0;  // probability of `predicted`
};

inline constexpr double kUnmeasured = std::numeric_limits<double>::quiet_NaN();

// Those that a loss does not have, or that mean nothing for the examples at hand, are kUnmeasured.
struct Quality {
  LossKind kind = LossKind::kLogistic;
  uint64_t examples = 0;
  double loss = 0;  // mean of LossOf, in the labels' unit: what one training is compared by
  uint64_t positives = 0;
  // Of two classes.
  double auc = kUnmeasured;       // a positive example has the higher margin, ties count half; none
                                  // if there are no two classes
  double log_loss = kUnmeasured;  // mean of −log of the probability given to the true label, nats
  double accuracy = kUnmeasured;  // margin > 0 says 1; of several classes: the greatest margin
  double hinge = kUnmeasured;
  // Of several.
  double macro_f1 = kUnmeasured;  // mean over the classes that are there or were predicted
  // Of numbers, in the labels' unit.
  double rmse = kUnmeasured;
  double mae = kUnmeasured;
  double r2 = kUnmeasured;  // 1 − Σ(y − ŷ)² / Σ(y − mean)²; none if all labels are alike
  double pinball = kUnmeasured;
  double coverage = kUnmeasured;  // share of labels that are at most the prediction
  double deviance = kUnmeasured;  // of Poisson, mean
};

// A measure as it is told.
struct Metric {
  std::string_view key;    // in JSON
  std::string_view title;  // for people
  double value = 0;
};

// All that were measured, the most telling first.
std::vector<Metric> MetricsOf(const Quality& quality);

// The metrics, and `examples`; of two classes `positives`.
json::object ToJson(const Quality& quality);

// Of two classes: sorts `scored`. O(n log n). Zeros for an empty list.
Quality MeasureQuality(std::span<Scored> scored);

// Of any loss but softmax. Sorts `scored` for two classes.
Quality MeasureQuality(const Target& target, std::span<Scored> scored);

// Of several classes.
Quality MeasureQuality(std::span<const ScoredClass> scored, size_t classes);

// Of one example from its margins.
ScoredClass ScoreClass(std::span<const float> margins, uint32_t label);

}  // namespace shoal::learn::sparse
