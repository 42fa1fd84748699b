// train t as DTFAlg.`path` where pythonScriptPath="…" and `fitParam.N.jobName`="worker" …;
#include <filesystem>
#include <utility>

#include "sql/cluster/cluster_job.h"
#include "sql/cluster/cluster_params.h"
#include "sql/statements/statements.h"
#include "sql/statements/train_result.h"

namespace shoal::sql {
namespace {

Grid GridOf(const ClusterParams& params, const std::string& model, const FinishedJob& finished) {
  Grid grid = MakeTrainGrid();
  for (const ClusterGroup& group : params.groups) {
    json::object fit;
    for (const auto& [name, value] : group.params) fit[name] = value;
    grid.rows.push_back({json::string(model), group.number, "DTFAlg", nullptr, "success",
                         json::string(FormatWall(finished.started)),
                         json::string(FormatWall(finished.ended)), json::string(ToText(fit)),
                         json::string(finished.id)});
  }
  return grid;
}

}  // namespace

Result<StatementResult> TrainCluster(const ScriptText& script, const ClusterStatement& statement,
                                     OptionList* options, SessionState* state) {
  TRY_ASSIGN(const ClusterParams params, TakeClusterParams(statement.span, options));
  ClusterInput input;
  input.table = statement.table;
  input.path = statement.path;
  std::error_code error;
  input.folder = std::filesystem::current_path(error).string();
  input.stopped = [host = state->host] { return host->Stopped(); };
  if (params.validate_table) {
    TRY_ASSIGN(input.validate, state->FindTable(script, *params.validate_table));
  }
  Result<ClusterJob> made = ClusterJob::Make(params, input);
  if (!made.ok()) return script.Locate(statement.span, made.status());
  for (const std::string& note : made->notes()) state->host->Note(note);
  const Result<FinishedJob> finished = state->host->RunJob(made->job(), params.engine);
  if (!finished.ok()) return script.Locate(statement.span, finished.status());
  TRY(script.Locate(statement.span, EndOf(*finished)));
  // The model's directory is known when it is made; meta holds the path of the statement.
  const Grid meta = GridOf(params, statement.path, *finished);
  TRY_ASSIGN(const std::string rows, TrainRowsText(meta));
  const Result<std::filesystem::path> model = made->Publish(rows);
  if (!model.ok()) return script.Locate(statement.span, model.status());
  return FinishTraining(script, statement.train, GridOf(params, model->string(), *finished), state);
}

}  // namespace shoal::sql
