#include "sql/session/session.h"

#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/file.h"
#include "sql/statements/statements.h"
#include "sql/syntax/parser.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;

// The text of a macro with {0}, {1}, … replaced by the arguments.
Result<std::string> FillMacro(const ScriptText& script, const CommandStatement& command,
                              std::string_view text) {
  std::string filled;
  while (!text.empty()) {
    const size_t open = text.find('{');
    filled += text.substr(0, open);
    if (open == std::string_view::npos) break;
    text.remove_prefix(open);
    size_t number = 0;
    const auto parsed = std::from_chars(text.data() + 1, text.data() + text.size(), number);
    const bool place =
        parsed.ec == std::errc() && parsed.ptr != text.data() + text.size() && *parsed.ptr == '}';
    if (!place) {
      filled += '{';
      text.remove_prefix(1);
      continue;
    }
    if (number >= command.arguments.size())
      return script.Error(command.name.span, "!" + command.name.text + " uses the argument {" +
                                                 std::to_string(number) + "}, got " +
                                                 std::to_string(command.arguments.size()) +
                                                 " arguments");
    filled += command.arguments[number].text;
    text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()) + 1);
    if (filled.size() > kMaxScript)
      return script.Error(command.name.span,
                          "with its arguments !" + command.name.text + " is too long");
  }
  return filled;
}

}  // namespace

Status Session::Run(const ScriptPtr& script) {
  last_ = {};
  TRY(CheckScript(*script).status());
  TRY(RunStatements(*script, 0));
  return ShowResult(last_);
}

Status Session::ShowResult(const StatementResult& result) {
  if (result.rows) return state_.host->Show(*result.rows);
  const auto table = state_.tables.find(result.table);
  if (result.table.empty() || table == state_.tables.end()) return Status::Ok();
  TRY_ASSIGN(const Grid head, HeadOf(table->second, options_.shown_rows, options_.shown_bytes));
  return state_.host->Show(head);
}

Status Session::RunStatements(const ScriptText& script, size_t depth) {
  Parser parser(script);
  for (;;) {
    TRY_ASSIGN(const std::optional<Statement> statement, parser.Next());
    if (!statement) return Status::Ok();
    if (state_.host->Stopped()) return Cancelled("stopped");
    if (++executed_ > kMaxExecuted)
      return script.Error(statement->span, "this session has executed " +
                                               std::to_string(kMaxExecuted) +
                                               " statements; begin another");
    TRY(RunStatement(script, *statement, depth));
  }
}

Status Session::RunStatement(const ScriptText& script, const Statement& statement, size_t depth) {
  if (const auto* const include = std::get_if<IncludeStatement>(&statement.body))
    return Include(script, *include, depth);
  if (const auto* const command = std::get_if<CommandStatement>(&statement.body);
      command != nullptr && state_.variables.Has(command->name.text))
    return RunMacro(script, *command, depth);
  Result<StatementResult> result = std::visit(
      [&](const auto& body) -> Result<StatementResult> {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, IncludeStatement>) {
          return StatementResult();
        } else {
          return Execute(script, body, &state_);
        }
      },
      statement.body);
  if (!result.ok()) return result.status();
  if (result->shown_at_once) {
    TRY(ShowResult(*result));
    last_ = {};
  } else {
    last_ = std::move(*result);
  }
  return Status::Ok();
}

Status Session::RunNested(const ScriptText& outer, Span span, const ScriptText& inner,
                          size_t depth) {
  if (depth + 1 > kMaxIncludeDepth)
    return outer.Error(span, "more than " + std::to_string(kMaxIncludeDepth) +
                                 " scripts include each other; one of them includes itself");
  TRY(CheckScript(inner).status());
  return RunStatements(inner, depth + 1);
}

Status Session::Include(const ScriptText& script, const IncludeStatement& include, size_t depth) {
  TRY_ASSIGN(const Word kind, state_.variables.Expand(script, include.source.kind));
  TRY_ASSIGN(const Word path, state_.variables.Expand(script, include.source.path));
  if (kind.text != "file")
    return script.Error(kind.span, "got " + kind.text.substr(0, 64) +
                                       ", expected file, as in include file.`other.sql`");
  const fs::path file = fs::path(script.name()).parent_path() / path.text;
  TRY(script.Locate(path.span, state_.host->CheckPath(file.string())));
  Result<std::string> text = ReadFile(file, kMaxScript);
  if (!text.ok()) return script.Locate(path.span, text.status());
  const ScriptText inner(file.string(), std::move(*text));
  return RunNested(script, path.span, inner, depth);
}

Status Session::RunMacro(const ScriptText& script, const CommandStatement& command, size_t depth) {
  const std::string& text = state_.variables.values().at(command.name.text);
  TRY_ASSIGN(std::string filled, FillMacro(script, command, text));
  const ScriptText inner("!" + command.name.text, std::move(filled));
  return RunNested(script, command.name.span, inner, depth);
}

}  // namespace shoal::sql
