// Predictions of a saved model for the examples of files, and how good they are. Called by
// src/cli/commands/predict.cc; needs no servers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "data/examples/examples.h"
#include "learn/sparse/quality.h"
#include "model/factor_model.h"

namespace shoal::learn::sparse {

struct Predictions {
  std::vector<float> probabilities;  // of `positive`, in the order of the examples
  // Absent where a label is none of the model's classes (−1, 0 and 1 if they have no names), or CSV
  // has no column of labels.
  std::optional<Quality> quality;
  // Columns of csv that the model was trained on, but for the label's, and that the data has not:
  // every example is predicted as if their cells were empty.
  std::vector<std::string> missing_columns;
  std::string positive = "1";  // the class whose probability it is
};

struct PredictOptions {
  std::string format;  // libsvm, libffm, csv; empty: that of the training data
  uint64_t threads = 1;
};

// Reads and predicts; takes 12 bytes of memory an example. `metadata` is the model's model.json,
// which says what CSV's columns are; it may be empty. Errors as data::Corpus::Open and
// data::ExampleReader.
Result<Predictions> Predict(const model::FactorModel& model, const json::object& metadata,
                            const std::vector<std::string>& sources, const PredictOptions& options);

}  // namespace shoal::learn::sparse
