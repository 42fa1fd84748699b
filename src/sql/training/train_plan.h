// From a statement `train t as ALGORITHM.`path` where …` to a job.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"
#include "learn/algorithm.h"
#include "sql/session/option_list.h"
#include "sql/tables/table.h"

namespace shoal::sql {

// An algorithm by its name in the language. Static storage.
struct SqlAlgorithm {
  std::string_view name;   // "LogisticRegression"
  std::string_view learn;  // name of the built-in trainer
  std::string_view doc;
};
const std::vector<SqlAlgorithm>& SqlAlgorithms();
// InvalidArgument suggests the nearest one.
Result<const SqlAlgorithm*> FindSqlAlgorithm(const std::string& name);

// The parameters of a training that are not the algorithm's: "workers", "keepVersion", ….
const std::vector<std::string>& TrainJobParams();

struct TrainPlan {
  job::Job job;
  std::string engine;           // empty: the default
  std::filesystem::path model;  // where the trained model will be
  json::object params;          // as the statement gives them
};

struct TrainInput {
  const SqlAlgorithm* algorithm = nullptr;
  const Table* table = nullptr;
  std::string path;  // of the model
  Span span;         // of ALGORITHM.`path`, for errors without a place of their own
  // The table that a parameter names, such as evaluateTable.
  std::function<Result<const Table*>(const Word& name)> find_table;
};

// Takes all parameters of the statement. Each is checked by the trainer's own table, and an error
// stands at it, as all errors stand at a place. Reads directories only (keepVersion), and writes
// nothing.
Result<TrainPlan> PlanTraining(const TrainInput& input, OptionList* options);

// The directory for the next version of a model: `_model_N` with the number after the greatest.
std::filesystem::path NextVersion(const std::filesystem::path& path);

// The directory of the newest complete model of a path: itself, or of its versions `_model_N` the
// greatest. NotFound.
Result<std::filesystem::path> FindModel(const std::string& path);

}  // namespace shoal::sql
