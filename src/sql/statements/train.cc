// train t as ALGORITHM.`path` [where …] [as result];
#include "base/json.h"
#include "model/save_model.h"
#include "sql/session/option_list.h"
#include "sql/statements/statements.h"
#include "sql/statements/train_result.h"
#include "sql/syntax/lexer.h"
#include "sql/training/train_plan.h"

namespace shoal::sql {
namespace {

constexpr int64_t kMaxPartitions = 10'000;

// The measure of the model on held-out examples that is greater for a better model; null if there
// is none.
json::value ScoreOf(const std::filesystem::path& model) {
  const Result<json::object> metadata = model::ReadModelMetadata(model);
  if (!metadata.ok()) return nullptr;
  for (const char* const section : {"held_out", "validation"}) {
    const json::object* const measures = FindObject(*metadata, section);
    if (measures == nullptr) continue;
    for (const char* const name : {"auc", "accuracy", "r2"}) {
      if (const auto found = measures->find(name);
          found != measures->end() && found->value().is_number())
        return found->value();
    }
  }
  return nullptr;
}

// run t as TableRepartition.`` where partitionNum="4" as u; the rows stay where they are, and
// clusters of the table have so many workers.
Result<StatementResult> Repartition(const ScriptText& script, const TrainStatement& train,
                                    const Table& table, OptionList* options, SessionState* state) {
  TRY_ASSIGN(const int64_t parts, options->TakeInteger("partitionNum", 1, kMaxPartitions, 0));
  TRY(options->RefuseRest({"partitionNum"}));
  const Span span = train.model.kind.span;
  if (parts == 0) return script.Error(span, "the parameter partitionNum is missing");
  if (!train.result)
    return script.Error(span, "the result has no name; end the statement with `as NAME`");
  TRY_ASSIGN(const Word name, state->variables.Expand(script, *train.result));
  Table copy = table;
  copy.partitions = static_cast<uint64_t>(parts);
  TRY(state->PutTable(script, name, std::move(copy)));
  return StatementResult{name.text, std::nullopt, false};
}

bool IsRepartition(std::string_view algorithm) {
  return IsKeyword(algorithm, "tablerepartition") || IsKeyword(algorithm, "repartitionext");
}

Grid GridOf(const TrainPlan& plan, const SqlAlgorithm& algorithm, const FinishedJob& finished) {
  Grid grid = MakeGrid(TrainColumns());
  grid.rows.push_back({json::string(plan.model.string()), 0, json::string(algorithm.name),
                       ScoreOf(plan.model), "success", json::string(FormatWall(finished.started)),
                       json::string(FormatWall(finished.ended)), json::string(ToText(plan.params)),
                       json::string(finished.id)});
  return grid;
}

}  // namespace

Result<StatementResult> Execute(const ScriptText& script, const TrainStatement& train,
                                SessionState* state) {
  TRY_ASSIGN(const Word input_name, state->variables.Expand(script, train.input));
  TRY_ASSIGN(const Word kind, state->variables.Expand(script, train.model.kind));
  TRY_ASSIGN(const Word path, state->variables.Expand(script, train.model.path));
  TRY_ASSIGN(std::vector<Option> expanded, state->variables.Expand(script, train.options));
  TRY_ASSIGN(const Table* const table, state->FindTable(script, input_name));
  const Span span{kind.span.begin, path.span.end};
  OptionList options(script, std::move(expanded));
  if (IsRepartition(kind.text)) return Repartition(script, train, *table, &options, state);
  if (path.text.empty())
    return script.Error(path.span, "this path is empty, expected where the model will be");
  TRY(script.Locate(path.span, state->host->CheckPath(path.text)));
  if (const auto cluster = ClusterKindOf(kind.text))
    return TrainCluster(script, {train, *cluster, span, path.text, table}, &options, state);
  const Result<const SqlAlgorithm*> algorithm = FindSqlAlgorithm(kind.text);
  if (!algorithm.ok()) return script.Locate(kind.span, algorithm.status());
  const TrainInput input{*algorithm, table, path.text, span,
                         [&](const Word& name) { return state->FindTable(script, name); }};
  TRY_ASSIGN(const TrainPlan plan, PlanTraining(input, &options));
  const Result<FinishedJob> finished = state->host->RunJob(plan.job, plan.engine);
  if (!finished.ok()) return script.Locate(span, finished.status());
  TRY(script.Locate(span, EndOf(*finished)));
  return FinishTraining(script, train, TrainColumns(), GridOf(plan, **algorithm, *finished), state);
}

}  // namespace shoal::sql
