// connect FORMAT where url="/data" as name; then load FORMAT.`name.people.csv` reads
// /data/people.csv.
#include "sql/session/option_list.h"
#include "sql/statements/statements.h"
#include "sql/syntax/lexer.h"

namespace shoal::sql {
namespace {

constexpr size_t kMaxConnections = 1000;

}  // namespace

Result<StatementResult> Execute(const ScriptText& script, const ConnectStatement& connect,
                                SessionState* state) {
  TRY_ASSIGN(const Word format, state->variables.Expand(script, connect.format));
  TRY_ASSIGN(const Word name, state->variables.Expand(script, connect.name));
  TRY_ASSIGN(std::vector<Option> expanded, state->variables.Expand(script, connect.options));
  if (IsKeyword(format.text, "jdbc"))
    return script.Error(format.span,
                        "databases are not read; load files that they export, such as Parquet");
  const Result<data::RecordFormat> known = ParseLoadFormat(format.text);
  if (!known.ok()) return script.Locate(format.span, known.status());
  OptionList options(script, std::move(expanded));
  const auto url = options.Take("url");
  if (!url || url->value.text.empty())
    return script.Error(format.span,
                        "the parameter url is missing; it names a directory of tables");
  if (name.text.find('.') != std::string::npos)
    return script.Error(name.span, "the name of a connection has no dot");
  if (state->connections.size() >= kMaxConnections && !state->connections.contains(name.text))
    return script.Error(name.span, "this session has " + std::to_string(kMaxConnections) +
                                       " connections; begin another");
  std::string lower = format.text;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  state->connections[name.text] = {lower, url->value.text, options.TakeRest()};
  return StatementResult();
}

}  // namespace shoal::sql
