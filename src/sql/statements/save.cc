// save [overwrite|append|errorIfExists|ignore] t as FORMAT.`path` [where …];
#include <algorithm>

#include "job/text/errors.h"
#include "sql/session/option_list.h"
#include "sql/statements/statements.h"
#include "sql/syntax/lexer.h"
#include "sql/tables/save_table.h"

namespace shoal::sql {
namespace {

Result<data::RecordFormat> ParseSaveFormat(const std::string& name) {
  TRY_ASSIGN(const data::RecordFormat format, ParseLoadFormat(name));
  std::string list;
  for (const std::string& one : SaveFormats()) {
    if (IsKeyword(name, one)) return format;
    list += (list.empty() ? "" : ", ") + one;
  }
  return InvalidArgument("tables are not saved as " + name + ", expected one of " + list);
}

}  // namespace

Result<StatementResult> Execute(const ScriptText& script, const SaveStatement& save,
                                SessionState* state) {
  TRY_ASSIGN(const Word name, state->variables.Expand(script, save.table));
  TRY_ASSIGN(const Word kind, state->variables.Expand(script, save.target.kind));
  TRY_ASSIGN(const Word path, state->variables.Expand(script, save.target.path));
  TRY_ASSIGN(std::vector<Option> expanded, state->variables.Expand(script, save.options));
  TRY_ASSIGN(const Table* const table, state->FindTable(script, name));
  const Result<data::RecordFormat> format = ParseSaveFormat(kind.text);
  if (!format.ok()) return script.Locate(kind.span, format.status());
  OptionList options(script, std::move(expanded));
  TRY_ASSIGN(const bool header, options.TakeFlag("header", true));
  TRY_ASSIGN(const int64_t files, options.TakeInteger("fileNum", 1, 1, 1));
  (void)files;  // one file is written
  if (!header) return script.Error(path.span, "a table is saved with a header; leave header out");
  TRY(options.RefuseRest({"header", "fileNum"}));
  TRY(script.Locate(path.span, state->host->CheckPath(path.text)));
  TRY_ASSIGN(const auto scratch, SessionState::MakeDirectory());
  const SaveOptions how{save.mode, *format, scratch->path(),
                        [host = state->host] { return host->Stopped(); }};
  const Result<Saved> saved = SaveTable(*table, path.text, how);
  if (!saved.ok()) return script.Locate(path.span, saved.status());
  state->host->Note(saved->ignored ? path.text + " exists and stays as it is"
                                   : "saved " + std::to_string(saved->rows) +
                                         (saved->rows == 1 ? " row to " : " rows to ") +
                                         AbsolutePath(path.text));
  return StatementResult();
}

}  // namespace shoal::sql
