// predict t as ALGORITHM.`path` [where …] [as result];
#include <algorithm>
#include <thread>

#include "sql/session/option_list.h"
#include "sql/statements/statements.h"
#include "sql/training/predict_table.h"
#include "sql/training/train_plan.h"

namespace shoal::sql {
namespace {

constexpr size_t kShownRows = 20;

// The trainer that must have made the model; LogisticRegression and LinearRegression each read the
// other's models.
std::string TrainerOf(const SqlAlgorithm& algorithm) {
  const bool linear = algorithm.learn == "logistic" || algorithm.learn == "linear";
  return linear ? "" : std::string(algorithm.learn);
}

Result<PredictTableOptions> TakeOptions(const SqlAlgorithm& algorithm, OptionList* options) {
  PredictTableOptions taken;
  taken.trainer = TrainerOf(algorithm);
  taken.prediction = options->TakeText("predictionCol", taken.prediction);
  taken.probability = options->TakeText("probabilityCol", taken.probability);
  const auto cores = static_cast<int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  TRY_ASSIGN(const int64_t threads, options->TakeInteger("threads", 1, 1024, cores));
  taken.threads = static_cast<uint64_t>(threads);
  TRY(options->RefuseRest(PredictParams()));
  return taken;
}

}  // namespace

std::vector<std::string> PredictParams() { return {"predictionCol", "probabilityCol", "threads"}; }

Result<StatementResult> Execute(const ScriptText& script, const PredictStatement& predict,
                                SessionState* state) {
  TRY_ASSIGN(const Word input_name, state->variables.Expand(script, predict.input));
  TRY_ASSIGN(const Word kind, state->variables.Expand(script, predict.model.kind));
  TRY_ASSIGN(const Word path, state->variables.Expand(script, predict.model.path));
  TRY_ASSIGN(std::vector<Option> expanded, state->variables.Expand(script, predict.options));
  TRY_ASSIGN(const Table* const table, state->FindTable(script, input_name));
  const Result<const SqlAlgorithm*> algorithm = FindSqlAlgorithm(kind.text);
  if (!algorithm.ok()) return script.Locate(kind.span, algorithm.status());
  if ((*algorithm)->learn == "word2vec")
    return script.Error(
        kind.span, "word vectors predict no rows; `shoal nearest` and `shoal analogy` read them");
  TRY(script.Locate(path.span, state->host->CheckPath(path.text)));
  const auto model = FindModel(path.text);
  if (!model.ok()) return script.Locate(path.span, model.status());
  OptionList options(script, std::move(expanded));
  TRY_ASSIGN(PredictTableOptions how, TakeOptions(**algorithm, &options));
  how.stopped = [host = state->host] { return host->Stopped(); };
  Result<PredictedTable> predicted = PredictTable(*model, *table, how);
  if (!predicted.ok()) return script.Locate({kind.span.begin, path.span.end}, predicted.status());
  if (!predicted->missing_columns.empty()) {
    std::string list;
    for (const std::string& name : predicted->missing_columns)
      list += (list.empty() ? "" : ", ") + name;
    state->host->Note(
        "the table lacks columns that the model was trained on, and is predicted as if "
        "their cells were empty: " +
        list);
  }
  predicted->table.origin = "predict " + input_name.text;
  // Without a name the rows are shown and not kept.
  const std::string name = predict.result ? predict.result->text : "";
  if (name.empty()) {
    TRY_ASSIGN(Grid head, HeadOf(predicted->table, kShownRows));
    return StatementResult{"", std::move(head), false};
  }
  TRY_ASSIGN(const Word result, state->variables.Expand(script, *predict.result));
  TRY(state->PutTable(script, result, std::move(predicted->table)));
  return StatementResult{result.text, std::nullopt, false};
}

}  // namespace shoal::sql
