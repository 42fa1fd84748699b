// set x = "…" [where type="text|defaultParam"]; drop [table] t;
#include "sql/session/option_list.h"
#include "sql/statements/statements.h"

namespace shoal::sql {

Result<StatementResult> Execute(const ScriptText& script, const SetStatement& set,
                                SessionState* state) {
  TRY_ASSIGN(const Word name, state->variables.Expand(script, set.name));
  TRY_ASSIGN(std::vector<Option> expanded, state->variables.Expand(script, set.options));
  OptionList options(script, std::move(expanded));
  bool only_if_missing = false;
  if (const auto type = options.Take("type")) {
    only_if_missing = type->value.text == "defaultParam";
    if (!only_if_missing && type->value.text != "text")
      return script.Error(
          type->value.span,
          "got the type " + type->value.text.substr(0, 64) +
              ", expected text, or defaultParam for a value that --set may replace");
  }
  TRY(options.RefuseRest({"type"}));
  if (only_if_missing && state->variables.Has(name.text)) return StatementResult();
  TRY_ASSIGN(Word value, state->variables.Expand(script, set.value));
  state->variables.Set(name.text, std::move(value.text));
  return StatementResult();
}

Result<StatementResult> Execute(const ScriptText& script, const DropStatement& drop,
                                SessionState* state) {
  TRY_ASSIGN(const Word name, state->variables.Expand(script, drop.table));
  TRY(state->FindTable(script, name).status());
  state->tables.erase(name.text);
  return StatementResult();
}

}  // namespace shoal::sql
