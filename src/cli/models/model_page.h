// The report of a model as one page: curves, calibration, confusion, residuals, the strongest
// features, parameters and data. Used by `shoal report` and `shoal predict --report`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "learn/sparse/describe.h"
#include "learn/sparse/objective/assessment.h"

namespace shoal::cli {

// Predictions that a page is about, in place of those at the end of the training.
struct PredictedData {
  std::vector<std::string> files;
  json::object quality;  // the measures, and `examples`
  learn::sparse::Assessment assessment;
};

struct ModelPage {
  std::string path;                                        // of the model, as given
  json::object metadata;                                   // its model.json
  const learn::sparse::ModelDescription* model = nullptr;  // not owned
  std::optional<PredictedData> predicted;
};

// A whole HTML document without scripts, and without references to anything outside it. All texts
// are escaped. DataLoss if model.json is malformed.
Result<std::string> RenderModelPage(const ModelPage& page);

}  // namespace shoal::cli
