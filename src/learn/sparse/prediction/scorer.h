// A model that predicts rows of requests, with the functions and to the digit of `shoal predict`.
// src/serving has one for each version that it serves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "data/examples/examples.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/prediction/model_reading.h"
#include "model/factor_model.h"

namespace shoal::learn::sparse {

// The answers for a batch. `width` numbers for each example: its probability, number or margin; of
// several classes a probability for each. Finite.
struct Scores {
  size_t width = 1;
  std::vector<double> values;  // [examples × width]
};

// Immutable; thread-safe.
class Scorer {
 public:
  // Errors as ReadingOf and RowOptionsOf.
  static Result<Scorer> Make(model::FactorModel model, const json::object& metadata);

  const ModelReading& reading() const { return reading_; }
  const data::ExampleOptions& options() const { return options_; }  // of the rows it takes
  // The columns that rows may name, without label, weight and key; empty where there are none.
  const std::vector<std::string>& columns() const { return columns_; }
  // "probability", "probabilities", "value" or "margin".
  const char* output() const;
  // Digits that `shoal predict` prints of a value.
  int digits() const { return is_probability() ? 6 : 9; }

  // Predicts the examples of `set`, which was read with options() and is changed. `scratch` is one
  // thread's. InvalidArgument names the first example whose prediction is no finite number.
  Result<Scores> Score(data::ExampleSet* set, Scratch* scratch) const;
  // The name of the most probable class of example `i`; empty if the model predicts numbers.
  std::string ClassOf(const Scores& scores, size_t i) const;

 private:
  Scorer() = default;
  bool is_probability() const {
    const LossKind kind = reading_.target.loss.kind;
    return kind == LossKind::kLogistic || kind == LossKind::kSoftmax;
  }
  void ScoreOne(const Row& row, Scratch* scratch, double* to) const;

  model::FactorModel model_;
  ModelReading reading_;
  data::ExampleOptions options_;
  std::vector<std::string> columns_;
};

}  // namespace shoal::learn::sparse
