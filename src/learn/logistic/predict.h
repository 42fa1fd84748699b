// Predictions of a saved linear model for the examples of files, and how good they are. Called by
// src/cli/predict.cc; needs no servers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "learn/logistic/quality.h"
#include "model/linear.h"

namespace shoal::learn::logistic {

struct Predictions {
  std::vector<float> probabilities;  // of label 1, in the order of the examples
  std::optional<Quality> quality;    // absent where a label is none of −1, 0 and 1
};

// Reads and predicts with `threads` (≥ 1) threads; takes 12 bytes of memory an example. Errors as
// data::Corpus::Open and data::ExampleReader.
Result<Predictions> Predict(const model::LinearModel& model,
                            const std::vector<std::string>& sources, uint64_t threads);

}  // namespace shoal::learn::logistic
