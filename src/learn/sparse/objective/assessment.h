// Where predictions on held-out examples are right and where they are wrong, in a few hundred
// numbers: calibration, confusion of classes, residuals. Worker 0 saves it with the model; the
// report of `shoal report` is drawn from it. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "learn/sparse/objective/label_scale.h"
#include "learn/sparse/objective/quality.h"

namespace shoal::learn::sparse {

// Examples whose predictions lie side by side.
struct PredictionBin {
  uint64_t examples = 0;
  // Means of the prediction: of two classes the probability of class 1, of several the probability
  // of the predicted class, of numbers the number.
  double predicted = 0;
  // Of two classes the share of class 1, of several the share that was predicted right, of numbers
  // the mean label, of quantile the share of labels that are at most the prediction.
  double observed = 0;
  bool operator==(const PredictionBin&) const = default;
};

struct Assessment {
  static constexpr size_t kMostBins = 20;
  static constexpr size_t kMostClasses = 20;  // of `counts`, without that of all others
  static constexpr size_t kResiduals = 11;

  uint64_t examples = 0;
  // By ascending prediction, about equally many examples in each, at least 20; equal predictions
  // share one. Empty for hinge, whose margins are no probabilities.
  std::vector<PredictionBin> bins;
  // Of numbers: label less prediction, the smallest, the nine deciles and the greatest.
  std::vector<double> residuals;
  // Of classes: the numbers of the most frequent ones, ascending.
  std::vector<uint32_t> classes;
  bool others = false;  // whether a last row and column count all other classes
  // Row by row: examples of the class of the row that were predicted as that of the column.
  std::vector<uint64_t> counts;

  size_t sides() const { return classes.size() + (others ? 1 : 0); }
  bool operator==(const Assessment&) const = default;
};

// Of any loss but softmax. Sorts `scored`. O(n log n).
Assessment AssessPredictions(const Target& target, std::span<Scored> scored);
// Of several classes. Sorts `scored`.
Assessment AssessPredictions(std::span<ScoredClass> scored, size_t classes);

// `of` is what was held out: "test" or "validation".
json::object ToJson(const Assessment& assessment, std::string_view of);

struct SavedAssessment {
  Assessment assessment;
  std::string of;
};
// The `assessment` of a model.json; none: it has none. DataLoss if it is malformed or larger than
// this program writes it.
Result<std::optional<SavedAssessment>> AssessmentFromJson(const json::object& metadata);

}  // namespace shoal::learn::sparse
