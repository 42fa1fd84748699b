// What train statements have in common: the result and the end of a job. Private to this folder.
#pragma once

#include <string>

#include "base/status.h"
#include "sql/session/option_list.h"
#include "sql/session/state.h"
#include "sql/syntax/ast.h"

namespace shoal::sql {

// A grid with the columns that MLSQL gives the result of a training, and the job.
Grid MakeTrainGrid();

// The rows as JSON lines.
Result<std::string> TrainRowsText(const Grid& grid);

// The error of a job that did not succeed.
Status EndOf(const FinishedJob& finished);

// Makes the statement's result a table, if it has a name.
Result<StatementResult> FinishTraining(const ScriptText& script, const TrainStatement& train,
                                       const Grid& grid, SessionState* state);

// A statement that trains by a cluster of the user's programs.
struct ClusterStatement {
  const TrainStatement& train;
  Span span;  // of ALGORITHM.`path`
  std::string path;
  const Table* table = nullptr;
};

// `train t as DTFAlg.`path``
Result<StatementResult> TrainCluster(const ScriptText& script, const ClusterStatement& statement,
                                     OptionList* options, SessionState* state);

}  // namespace shoal::sql
