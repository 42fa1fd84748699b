// Predictions of a model for the rows of a table.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "sql/tables/table.h"

namespace shoal::sql {

struct PredictTableOptions {
  std::string trainer;                      // that must have made the model: "logistic"
  std::string prediction = "prediction";    // name of the column
  std::string probability = "probability";  // likewise
  uint64_t threads = 1;
  std::function<bool()> stopped = nullptr;  // asked between rows; true ends it as Cancelled
};

struct PredictedTable {
  Table table;
  std::vector<std::string> missing_columns;  // that the model was trained on
};

// A table with the rows of `table` and their predictions: the likeliest class or the number, and
// for models of classes the probability: of two classes of the positive one, of several of the
// predicted one; of the loss hinge the margin. Of CSV and TSV it has the same format, of other
// tables it is JSON lines. Errors as learn::sparse::Predict; AlreadyExists for a column of the name
// of a new one.
Result<PredictedTable> PredictTable(const std::filesystem::path& model, const Table& table,
                                    const PredictTableOptions& options);

}  // namespace shoal::sql
