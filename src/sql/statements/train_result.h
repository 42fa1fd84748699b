// What train statements have in common: the result and the end of a job. Private to this folder.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "data/datasets/schema.h"
#include "sql/cluster/cluster_params.h"
#include "sql/session/option_list.h"
#include "sql/session/state.h"
#include "sql/syntax/ast.h"

namespace shoal::sql {

using ResultColumns = std::vector<data::SchemaColumn>;

// The columns that MLSQL gives the result of a training, and the job.
const ResultColumns& TrainColumns();

// A grid without rows.
Grid MakeGrid(const ResultColumns& columns);

// The rows as JSON lines.
Result<std::string> RowsText(const ResultColumns& columns, const Grid& grid);

// The error of a job that did not succeed.
Status EndOf(const FinishedJob& finished);

// Makes the statement's result, which has these columns, a table, if it has a name.
Result<StatementResult> FinishTraining(const ScriptText& script, const TrainStatement& train,
                                       const ResultColumns& columns, const Grid& grid,
                                       SessionState* state);

// A statement that trains by a cluster of the user's programs.
struct ClusterStatement {
  const TrainStatement& train;
  ClusterKind kind;
  Span span;  // of ALGORITHM.`path`
  std::string path;
  const Table* table = nullptr;
};

// `train t as DTFAlg.`path``, DTF or PythonAlg.
Result<StatementResult> TrainCluster(const ScriptText& script, const ClusterStatement& statement,
                                     OptionList* options, SessionState* state);

}  // namespace shoal::sql
