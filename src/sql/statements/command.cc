// !show WHAT; !desc t; !kill JOB;
#include <algorithm>
#include <utility>

#include "job/text/errors.h"
#include "sql/statements/statements.h"
#include "sql/syntax/lexer.h"
#include "sql/training/train_plan.h"

namespace shoal::sql {
namespace {

json::value Text(const std::string& text) {
  return text.empty() ? json::value() : json::value(json::string(text));
}

Grid ListTables(const SessionState& state) {
  Grid grid{{"table", "format", "columns", "origin"}, {}, false};
  for (const auto& [name, table] : state.tables)
    grid.rows.push_back({Text(name), json::string(data::NameOf(table.format)), table.columns.size(),
                         Text(table.origin)});
  return grid;
}

Grid ListVariables(const SessionState& state) {
  Grid grid{{"variable", "value"}, {}, false};
  for (const auto& [name, value] : state.variables.values())
    grid.rows.push_back({Text(name), Text(value)});
  return grid;
}

Grid ListAlgorithms() {
  Grid grid{{"algorithm", "trainer", "description"}, {}, false};
  for (const SqlAlgorithm& one : SqlAlgorithms())
    grid.rows.push_back({json::string(one.name), json::string(one.learn), json::string(one.doc)});
  grid.rows.push_back(
      {"DTFAlg", nullptr, "A script in a TensorFlow cluster, a group of parameters for each task"});
  grid.rows.push_back(
      {"DTF", nullptr, "A script in a TensorFlow cluster, a worker for each part of the table"});
  grid.rows.push_back(
      {"PythonAlg", nullptr, "Runs of a script beside each other, each with its own parameters"});
  return grid;
}

Grid ListFunctions(const SessionState& state) {
  Grid grid{{"function", "trainer", "model"}, {}, false};
  for (const auto& [name, function] : state.functions)
    grid.rows.push_back({Text(name), Text(function.trainer), Text(function.model)});
  return grid;
}

Grid ListFormats() {
  Grid grid{{"format"}, {}, false};
  for (const std::string& one : LoadFormats()) grid.rows.push_back({Text(one)});
  return grid;
}

Result<Grid> ListJobs(SessionState* state) {
  TRY_ASSIGN(const std::vector<ListedJob> jobs, state->host->ListJobs());
  Grid grid{{"job", "state", "submitted", "algorithm", "reason"}, {}, false};
  for (const ListedJob& job : jobs)
    grid.rows.push_back({Text(job.id), Text(job.state), Text(FormatWall(job.submitted)),
                         Text(job.algorithm), Text(job.reason)});
  return grid;
}

// The newest model of each directory that is still there.
Result<Grid> ListModels(SessionState* state) {
  TRY_ASSIGN(const std::vector<ListedJob> jobs, state->host->ListJobs());
  Grid grid{{"model", "algorithm", "job", "trained"}, {}, false};
  std::vector<std::string> seen;
  for (const ListedJob& job : jobs) {
    std::error_code ignored;  // what cannot be looked at is not listed
    const bool there = job.state == "succeeded" && !job.model.empty() &&
                       std::filesystem::exists(job.model + "/model.json", ignored);
    if (!there || std::find(seen.begin(), seen.end(), job.model) != seen.end()) continue;
    seen.push_back(job.model);
    grid.rows.push_back(
        {Text(job.model), Text(job.algorithm), Text(job.id), Text(FormatWall(job.submitted))});
  }
  return grid;
}

Result<Grid> Show(const ScriptText& script, const CommandStatement& command, const Word& what,
                  SessionState* state) {
  if (IsKeyword(what.text, "tables")) return ListTables(*state);
  if (IsKeyword(what.text, "variables")) return ListVariables(*state);
  if (IsKeyword(what.text, "algorithms")) return ListAlgorithms();
  if (IsKeyword(what.text, "formats")) return ListFormats();
  if (IsKeyword(what.text, "functions")) return ListFunctions(*state);
  const bool models = IsKeyword(what.text, "models");
  if (models || IsKeyword(what.text, "jobs")) {
    Result<Grid> grid = models ? ListModels(state) : ListJobs(state);
    return grid.ok() ? std::move(grid)
                     : Result<Grid>(script.Locate(command.name.span, grid.status()));
  }
  std::string list;
  for (const std::string& one : ShowLists()) list += (list.empty() ? "" : ", ") + one;
  return script.Error(what.span, "got " + what.text.substr(0, 64) + ", expected one of " + list +
                                     job::DidYouMean(what.text.substr(0, 64), ShowLists()));
}

Result<Grid> Describe(const ScriptText& script, const Word& name, SessionState* state) {
  TRY_ASSIGN(const Table* const table, state->FindTable(script, name));
  Grid grid{{"column", "type", "missing"}, {}, false};
  for (const data::SchemaColumn& column : table->columns)
    grid.rows.push_back(
        {Text(column.name), json::string(data::NameOf(column.type)), column.missing});
  return grid;
}

Result<Grid> Kill(const ScriptText& script, const Word& job, SessionState* state) {
  const Result<std::string> stopped = state->host->StopJob(job.text);
  if (!stopped.ok()) return script.Locate(job.span, stopped.status());
  return Grid{{"stopped"}, {{Text(*stopped)}}, false};
}

}  // namespace

const std::vector<std::string>& ShowLists() {
  static const std::vector<std::string> lists = {"tables",     "jobs",    "models",   "variables",
                                                 "algorithms", "formats", "functions"};
  return lists;
}

const std::vector<std::string>& CommandNames() {
  static const std::vector<std::string> names = {"show", "desc", "kill"};
  return names;
}

Result<StatementResult> Execute(const ScriptText& script, const CommandStatement& command,
                                SessionState* state) {
  const std::string& name = command.name.text;
  const bool show = IsKeyword(name, "show");
  if (!show && !IsKeyword(name, "desc") && !IsKeyword(name, "kill")) {
    std::vector<std::string> known = CommandNames();
    for (const auto& [variable, value] : state->variables.values()) known.push_back(variable);
    return script.Error(
        command.name.span,
        "there is no command !" + name.substr(0, 64) +
            ", expected !show, !desc, !kill or the name of a variable with statements" +
            job::DidYouMean(name.substr(0, 64), known));
  }
  if (command.arguments.size() != 1)
    return script.Error(
        command.name.span,
        "got " + std::to_string(command.arguments.size()) + " arguments of !" + name +
            ", expected one: " +
            (show ? "tables, jobs, models, variables, algorithms, formats or functions"
             : IsKeyword(name, "desc") ? "the name of a table"
                                       : "a job"));
  TRY_ASSIGN(const Word argument, state->variables.Expand(script, command.arguments.front()));
  Result<Grid> grid = show                      ? Show(script, command, argument, state)
                      : IsKeyword(name, "desc") ? Describe(script, argument, state)
                                                : Kill(script, argument, state);
  if (!grid.ok()) return grid.status();
  return StatementResult{"", std::move(*grid), true};
}

namespace {

// About the bytes of a row's cells.
size_t SizeOf(const std::vector<json::value>& row) {
  constexpr size_t kCell = 8;
  size_t bytes = 0;
  for (const json::value& cell : row) {
    if (cell.is_string()) {
      bytes += cell.get_string().size();
    } else if (cell.is_object() || cell.is_array()) {
      bytes += ToText(cell).size();
    }
    bytes += kCell;
  }
  return bytes;
}

}  // namespace

Result<Grid> HeadOf(const Table& table, size_t limit, size_t limit_bytes) {
  Grid grid;
  for (const data::SchemaColumn& column : table.columns) {
    grid.columns.push_back(column.name);
    const auto special = table.special.find(column.name);
    grid.types.push_back(special != table.special.end() ? special->second
                                                        : std::string(data::NameOf(column.type)));
  }
  TRY_ASSIGN(TableReader reader, TableReader::Open(table));
  std::vector<json::value> row;
  size_t bytes = 0;
  for (;;) {
    TRY_ASSIGN(const bool more, reader.Next(&row));
    if (!more) return grid;
    if (limit > 0 && grid.rows.size() == limit) break;
    if (limit_bytes > 0 && (bytes += SizeOf(row)) > limit_bytes) break;
    grid.rows.push_back(row);
  }
  grid.more = true;
  return grid;
}

}  // namespace shoal::sql
