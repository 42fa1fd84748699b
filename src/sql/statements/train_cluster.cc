// train t as DTFAlg.`path` where pythonScriptPath="…" and `fitParam.N.jobName`="worker" …; DTF and
// PythonAlg.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "job/text/units.h"
#include "sql/cluster/cluster_job.h"
#include "sql/cluster/cluster_params.h"
#include "sql/statements/statements.h"
#include "sql/statements/train_result.h"

namespace shoal::sql {
namespace {

const ResultColumns& DtfColumns() {
  using data::ColumnType;
  static const ResultColumns columns = {
      {"host", ColumnType::kText, 0},    {"port", ColumnType::kInteger, 0},
      {"jobName", ColumnType::kText, 0}, {"taskIndex", ColumnType::kInteger, 0},
      {"isPs", ColumnType::kBool, 0},    {"done", ColumnType::kBool, 0},
      {"success", ColumnType::kBool, 0}, {"modelPath", ColumnType::kText, 0},
      {"job", ColumnType::kText, 0}};
  return columns;
}

const ResultColumns& ColumnsOf(ClusterKind kind) {
  return kind == ClusterKind::kDtf ? DtfColumns() : TrainColumns();
}

// "host:port" in two cells.
std::pair<json::value, json::value> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {nullptr, nullptr};
  const auto port = job::ParseInteger(address.substr(colon + 1));
  return {json::string(address.substr(0, colon)), port ? json::value(*port) : json::value()};
}

// What an instance of PythonAlg trained, by its own parameters.
std::string AlgorithmOf(const ClusterGroup& group, ClusterKind kind) {
  for (const char* const name : {"alg", "className"}) {
    if (const auto found = group.params.find(name); found != group.params.end())
      return found->second;
  }
  return std::string(NameOf(kind));
}

std::vector<json::value> DtfRow(const ClusterJob& made, const ClusterGroup& group,
                                const std::string& model, const std::string& job) {
  auto [host, port] = SplitAddress(made.AddressOf(group));
  return {std::move(host),
          std::move(port),
          json::string(group.role),
          group.index,
          group.role != "worker",
          true,
          true,
          json::string(model),
          json::string(job)};
}

Grid GridOf(const ClusterJob& made, const ClusterParams& params, const std::string& model,
            const FinishedJob& finished) {
  Grid grid = MakeGrid(ColumnsOf(params.kind));
  const bool instances = params.kind == ClusterKind::kPythonAlg;
  for (const ClusterGroup& group : params.groups) {
    if (params.kind == ClusterKind::kDtf) {
      grid.rows.push_back(DtfRow(made, group, model, finished.id));
      continue;
    }
    json::object fit;
    for (const auto& [name, value] : group.params) fit[name] = value;
    const auto score = made.ScoreOf(group.number);
    const std::string path = instances ? model + "/model/" + std::to_string(group.number) : model;
    grid.rows.push_back(
        {json::string(path), group.number, json::string(AlgorithmOf(group, params.kind)),
         score ? json::value(*score) : json::value(), "success",
         json::string(FormatWall(finished.started)), json::string(FormatWall(finished.ended)),
         json::string(ToText(fit)), json::string(finished.id)});
  }
  return grid;
}

// The text of a script: a variable, or the first row of a table that `load script.` made.
Result<std::string> ScriptNamed(const ScriptText& script, const Word& name,
                                const SessionState& state) {
  const bool file_name = !name.text.empty() && name.text.find('/') == std::string::npos &&
                         name.text.front() != '.' && name.text.size() <= 128;
  if (!file_name) return script.Error(name.span, "this is no name of a script");
  if (!state.tables.contains(name.text) && state.variables.Has(name.text))
    return state.variables.values().at(name.text);
  TRY_ASSIGN(const Table* const table, state.FindTable(script, name));
  const Result<Grid> head = HeadOf(*table, 1);
  if (!head.ok()) return script.Locate(name.span, head.status());
  const bool text =
      head->rows.size() == 1 && head->rows[0].size() == 1 && head->rows[0][0].is_string();
  if (!text)
    return script.Error(name.span, "the table " + name.text +
                                       " is no script; `load script.`variable` as " + name.text +
                                       "` makes one");
  return std::string(head->rows[0][0].get_string());
}

int PartitionsOf(const Table& table) {
  return static_cast<int>(table.partitions > 0 ? table.partitions
                                               : std::max<size_t>(1, table.sources.size()));
}

Result<ClusterInput> InputOf(const ScriptText& script, const ClusterStatement& statement,
                             const ClusterParams& params, SessionState* state) {
  ClusterInput input;
  input.table = statement.table;
  input.path = statement.path;
  std::error_code error;
  input.folder = std::filesystem::current_path(error).string();
  input.stopped = [host = state->host] { return host->Stopped(); };
  if (params.validate_table) {
    TRY_ASSIGN(input.validate, state->FindTable(script, *params.validate_table));
  }
  for (const Word& name : params.scripts) {
    TRY_ASSIGN(input.scripts[name.text], ScriptNamed(script, name, *state));
  }
  return input;
}

}  // namespace

Result<StatementResult> TrainCluster(const ScriptText& script, const ClusterStatement& statement,
                                     OptionList* options, SessionState* state) {
  const ClusterKind kind = statement.kind;
  TRY_ASSIGN(const ClusterParams params,
             TakeClusterParams(kind, PartitionsOf(*statement.table), statement.span, options));
  if (!params.script.text.empty())
    TRY(script.Locate(params.script.span, state->host->CheckPath(params.script.text)));
  TRY_ASSIGN(const ClusterInput input, InputOf(script, statement, params, state));
  Result<ClusterJob> made = ClusterJob::Make(params, input);
  if (!made.ok()) return script.Locate(statement.span, made.status());
  for (const std::string& note : made->notes()) state->host->Note(note);
  const Result<FinishedJob> finished = state->host->RunJob(made->job(), params.engine);
  if (!finished.ok()) return script.Locate(statement.span, finished.status());
  TRY(script.Locate(statement.span, EndOf(*finished)));
  const Result<std::filesystem::path> model = made->Publish([&](const std::string& path) {
    return RowsText(ColumnsOf(kind), GridOf(*made, params, path, *finished));
  });
  if (!model.ok()) return script.Locate(statement.span, model.status());
  return FinishTraining(script, statement.train, ColumnsOf(kind),
                        GridOf(*made, params, model->string(), *finished), state);
}

}  // namespace shoal::sql
