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
#include "learn/sparse/objective/assessment.h"
#include "learn/sparse/objective/label_scale.h"
#include "learn/sparse/objective/quality.h"
#include "model/factor_model.h"

namespace shoal::learn::sparse {

// In the order of the examples.
struct Predictions {
  Target target;
  uint64_t examples = 0;
  // Of two classes by the logistic loss: of `positive`. Of several: [examples × classes].
  std::vector<float> probabilities;
  // Of the other losses: the predicted number, or the margin of hinge.
  std::vector<double> values;
  std::vector<std::string> keys;  // as many as examples, if there is a column of keys
  std::string key_column;         // its name
  // Absent where a label is missing or none of the model's classes (−1, 0 and 1 if they have no
  // names), or CSV has no column of labels.
  std::optional<Quality> quality;
  std::optional<Assessment> assessment;  // likewise
  // Columns of csv that the model was trained on, but for the label's, and that the data has not:
  // every example is predicted as if their cells were empty.
  std::vector<std::string> missing_columns;
  std::string positive = "1";        // of two classes: the one whose probability it is
  std::vector<std::string> classes;  // by number; of two, empty or the names of 0 and 1

  // The most probable class of an example; empty if the loss predicts numbers.
  std::string ClassOf(uint64_t example) const;
};

struct PredictOptions {
  std::string format;  // one of kFormats (params.h); empty: of tables that of
                       // the first file's name, else that of the training data
  uint64_t threads = 1;
  // csv: column of keys, by name or number; empty: the training's, if there is one.
  std::string key = {};
};

// Reads and predicts; takes 12 bytes of memory an example, of several classes four for each of
// them. `metadata` is the model's model.json, which says what CSV's columns are; it may be empty.
// Errors as data::Corpus::Open and data::ExampleReader.
Result<Predictions> Predict(const model::FactorModel& model, const json::object& metadata,
                            const std::vector<std::string>& sources, const PredictOptions& options);

}  // namespace shoal::learn::sparse
