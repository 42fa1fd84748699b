// The statements, each in its own file. They read and change the session's state; none starts
// anything itself: jobs go through Host::RunJob.
//
// `script` is the text that the statement stands in, for the places of errors. A statement that
// fails has changed nothing of the session.
#pragma once

#include "base/status.h"
#include "sql/session/state.h"
#include "sql/syntax/ast.h"

namespace shoal::sql {

Result<StatementResult> Execute(const ScriptText& script, const SetStatement& set,
                                SessionState* state);
Result<StatementResult> Execute(const ScriptText& script, const LoadStatement& load,
                                SessionState* state);
Result<StatementResult> Execute(const ScriptText& script, const SelectStatement& select,
                                SessionState* state);
Result<StatementResult> Execute(const ScriptText& script, const TrainStatement& train,
                                SessionState* state);
Result<StatementResult> Execute(const ScriptText& script, const PredictStatement& predict,
                                SessionState* state);
Result<StatementResult> Execute(const ScriptText& script, const RegisterStatement& statement,
                                SessionState* state);
Result<StatementResult> Execute(const ScriptText& script, const ConnectStatement& connect,
                                SessionState* state);
Result<StatementResult> Execute(const ScriptText& script, const SaveStatement& save,
                                SessionState* state);
Result<StatementResult> Execute(const ScriptText& script, const DropStatement& drop,
                                SessionState* state);
Result<StatementResult> Execute(const ScriptText& script, const CommandStatement& command,
                                SessionState* state);

// The names of the commands that begin with '!', without those that are variables (macros).
const std::vector<std::string>& CommandNames();

// What `!show` lists.
const std::vector<std::string>& ShowLists();
// The parameters of `load` for a format, and of `predict`.
std::vector<std::string> LoadParams(std::string_view format);
std::vector<std::string> PredictParams();

// The first rows of a table. `limit` 0: all. `limit_bytes` of their cells, about; 0: any number.
Result<Grid> HeadOf(const Table& table, size_t limit, size_t limit_bytes = 0);

}  // namespace shoal::sql
