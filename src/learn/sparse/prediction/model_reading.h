// How a saved model's examples are read and what its predictions mean, from its model.json. Used by
// predict.cc for files and by scorer.h for rows of requests.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "data/examples/examples.h"
#include "learn/sparse/objective/label_scale.h"
#include "learn/sparse/params.h"
#include "model/factor_model.h"

namespace shoal::learn::sparse {

// Plain data.
struct ModelReading {
  CommonParams params;  // as the training data was read
  Target target;
  data::ExampleFormat format = data::ExampleFormat::kLibsvm;  // of the training data
  std::string positive = "1";        // of two classes: the one whose probability is predicted
  std::vector<std::string> classes;  // by number; of two, empty or the names of 0 and 1
};

// `metadata` is the model's model.json; it may be empty. DataLoss if it is malformed or does not
// belong to the model.
Result<ModelReading> ReadingOf(const model::FactorModel& model, const json::object& metadata);

// How single rows are read that come without a file: of tables the columns are those of the
// training, and the label's is none. InvalidArgument if the model does not say what its columns
// were.
Result<data::ExampleOptions> RowOptionsOf(const ModelReading& reading);

}  // namespace shoal::learn::sparse
