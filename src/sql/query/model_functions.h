// Functions of registered models in queries: `register FM.`path` as f` makes f(row) and
// f_probability(row), and of word vectors f(word).
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "sql/query/duckdb_library.h"

namespace shoal::sql {

// A registered model; plain value, as JSON in the request to a query's process.
struct ModelFunction {
  std::string name;
  std::string trainer;  // "word2vec", "fm", …
  std::string model;    // its directory

  json::object ToJson() const { return {{"name", name}, {"trainer", trainer}, {"model", model}}; }
};
Result<ModelFunction> ParseModelFunction(const json::value& value);

// Reads the model and makes its functions. Rows go through files in `directory`. NotFound, DataLoss
// and InvalidArgument of a model that is not there or is of another trainer.
Status AddModelFunction(const ModelFunction& function, const std::string& directory, DuckDb* duck);

}  // namespace shoal::sql
