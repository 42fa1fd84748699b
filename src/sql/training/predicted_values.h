// What a prediction says: a class with its probability, or a number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/json.h"
#include "learn/sparse/predict.h"

namespace shoal::sql {

// The values of predictions, which must outlive it.
class PredictedValues {
 public:
  explicit PredictedValues(const learn::sparse::Predictions& predictions) : all_(predictions) {}

  // Whether they are numbers; else they are classes.
  bool numbers() const { return all_.target.loss.predicts_numbers(); }
  json::value PredictionOf(uint64_t row) const;
  // Of two classes of the positive one, of several of the predicted one; of the loss hinge the
  // margin.
  double ProbabilityOf(uint64_t row) const;

 private:
  const learn::sparse::Predictions& all_;
};

// The model was trained by this trainer, or InvalidArgument. An empty name: by any.
Status CheckTrainer(const json::object& metadata, const std::filesystem::path& model,
                    const std::string& trainer);

}  // namespace shoal::sql
