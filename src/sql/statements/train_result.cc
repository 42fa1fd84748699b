#include "sql/statements/train_result.h"

#include <utility>
#include <vector>

#include "base/file.h"
#include "sql/tables/row_writer.h"

namespace shoal::sql {
namespace {

Result<Table> TableOf(const ResultColumns& columns, const Grid& grid) {
  constexpr const char* kFile = "result.jsonl";
  TRY_ASSIGN(auto directory, SessionState::MakeDirectory());
  TRY_ASSIGN(const std::string lines, RowsText(columns, grid));
  TRY(WriteFileAtomically(directory->path() / kFile, lines, 0600, false));
  TRY_ASSIGN(Table table,
             OpenSessionFile(data::RecordFormat::kJsonLines, std::move(directory), kFile));
  table.columns = columns;
  return table;
}

}  // namespace

const ResultColumns& TrainColumns() {
  using data::ColumnType;
  static const ResultColumns columns = {
      {"modelPath", ColumnType::kText, 0}, {"algIndex", ColumnType::kInteger, 0},
      {"alg", ColumnType::kText, 0},       {"score", ColumnType::kFloat, 0},
      {"status", ColumnType::kText, 0},    {"startTime", ColumnType::kText, 0},
      {"endTime", ColumnType::kText, 0},   {"trainParams", ColumnType::kText, 0},
      {"job", ColumnType::kText, 0}};
  return columns;
}

Grid MakeGrid(const ResultColumns& columns) {
  Grid grid;
  for (const data::SchemaColumn& column : columns) grid.columns.push_back(column.name);
  return grid;
}

Result<std::string> RowsText(const ResultColumns& columns, const Grid& grid) {
  std::string lines;
  for (const auto& row : grid.rows)
    TRY(AppendRow(data::RecordFormat::kJsonLines, columns, row, &lines));
  return lines;
}

Status EndOf(const FinishedJob& finished) {
  const std::string id = "the job " + finished.id;
  if (finished.state == job::JobState::kSucceeded) return Status::Ok();
  if (finished.state != job::JobState::kFailed) return Cancelled(id + " was stopped");
  return Aborted(id + " failed" + (finished.reason.empty() ? "" : ": " + finished.reason) +
                 "; `shoal logs " + finished.id + "` has what it printed");
}

Result<StatementResult> FinishTraining(const ScriptText& script, const TrainStatement& train,
                                       const ResultColumns& columns, const Grid& grid,
                                       SessionState* state) {
  if (!train.result) return StatementResult{"", grid, false};
  TRY_ASSIGN(const Word result, state->variables.Expand(script, *train.result));
  TRY_ASSIGN(Table made, TableOf(columns, grid));
  made.origin = "train " + train.input.text;
  TRY(state->PutTable(script, result, std::move(made)));
  return StatementResult{result.text, std::nullopt, false};
}

}  // namespace shoal::sql
