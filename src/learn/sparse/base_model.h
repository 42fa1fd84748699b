// A saved model that a training continues (`--from MODEL`): what it fixes for the training, and its
// weights and optimizer state as the state of the features.
//
// The parameters are taken over before a learner is made (algorithm.h); worker.h reads the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "data/examples/csv.h"
#include "job/spec/job.h"
#include "learn/params/params.h"
#include "learn/sparse/learner.h"
#include "learn/sparse/objective/label_scale.h"
#include "model/factor_model.h"

namespace shoal::learn::sparse {

struct WorkerSetup;
class StateTable;

using LearnValues = std::map<std::string, job::LearnValue>;

struct BaseModel {
  std::string path;
  Target target;
  std::optional<data::CsvSchema> columns;  // of csv
  std::string format;                      // of the data that it was trained on
  uint64_t epochs = 0;                     // that it was trained in all
  std::string digest;                      // of weights.bin
  model::FactorModel model;                // with its optimizer state
};

// The model.json of `path`, a directory or a folder of a store. NotFound; InvalidArgument for word
// vectors; DataLoss if it is none.
Result<json::object> ReadBaseMetadata(const std::string& path);

// The whole model. Errors as ReadBaseMetadata and model::ReadFactorModel; FailedPrecondition if it
// was saved without its optimizer state. Takes memory for the model, and while it is read for a
// file of it.
Result<BaseModel> ReadBaseModel(const std::string& path);

// `learn` with the parameters that `metadata` was trained with and that `learn` does not give;
// those of the run (epochs, threads, validation, …) are not taken over. InvalidArgument names the
// first given one that would need another model, in one sentence; `algorithm` likewise. Without
// `from` in `learn` it is returned as it is.
Result<LearnValues> ContinueLearn(std::span<const Param> table, const LearnValues& learn,
                                  std::string_view file, std::string_view algorithm,
                                  const json::object& metadata);

// The value of `from`; empty: nothing is continued.
std::string FromIn(const LearnValues& learn);

// InvalidArgument unless a model of csv (`trained`: its columns) or of another format learns from
// data of this format.
Status CheckSameFormat(const std::string& path, const std::optional<data::CsvSchema>& trained,
                       std::string_view data_format);
// InvalidArgument unless the columns of data are those of a model, in any order.
Status CheckSameColumns(const std::string& path, const data::CsvSchema& trained,
                        const data::CsvSchema& here);

// Fills model->optimizer from the states of all features, those of the biases of several classes
// behind them; `bias` is that of one class. Feature i of the state is weight i of the model.
void KeepOptimizerState(const Learner& learner, const float* state, const float* bias,
                        model::FactorModel* model);

// The other way round: the states that FillModel and KeepOptimizerState make the model of. `state`
// is zeroed and has at least the model's features (of several classes `features` for each, then the
// biases). InvalidArgument if the learner's features have other weights than the model's.
Status RestoreState(const Learner& learner, const BaseModel& base, uint64_t features, float* state,
                    float* bias);

// Gives the table of a training that has not begun the state of setup.meaning.base. Of several
// workers, the first gives it to the servers, the others wait for that. Errors of the servers;
// Cancelled when the worker is to stop.
Status BeginFromBase(const WorkerSetup& setup, StateTable* table);

}  // namespace shoal::learn::sparse
