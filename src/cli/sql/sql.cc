// `shoal sql`: runs statements of SQL from a file or from the command line.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/file.h"
#include "cli/jobs/engines.h"
#include "cli/sql/shell/shell.h"
#include "cli/sql/sql_commands.h"
#include "cli/sql/sql_host.h"
#include "cli/terminal/report.h"
#include "sql/query/query_process.h"
#include "sql/session/session.h"

namespace shoal::cli {
namespace {

struct SqlArguments {
  std::string file;
  std::string statements;
  std::vector<std::string> set;
  std::string engine;
  uint64_t rows = 20;
  bool quiet = false;
};

Result<sql::ScriptPtr> ReadScript(const SqlArguments& arguments) {
  const bool given = !arguments.statements.empty();
  if (given != arguments.file.empty())
    return InvalidArgument(
        "expected either a FILE with statements (-: standard input) or -e 'STATEMENTS'; the "
        "interactive shell needs a terminal");
  if (given) return std::make_shared<const sql::ScriptText>("-e", arguments.statements);
  const bool standard_input = arguments.file == "-";
  TRY_ASSIGN(std::string text,
             ReadFile(standard_input ? "/dev/stdin" : arguments.file, sql::kMaxScript));
  return std::make_shared<const sql::ScriptText>(standard_input ? "stdin" : arguments.file,
                                                 std::move(text));
}

Status SetVariables(const std::vector<std::string>& set, sql::Session* session) {
  for (const std::string& one : set) {
    const size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0)
      return InvalidArgument("--set: got " + one + ", expected NAME=VALUE");
    session->SetVariable(one.substr(0, equals), one.substr(equals + 1));
  }
  return Status::Ok();
}

int RunSql(const Context& context, const SqlArguments& arguments) {
  const bool none = arguments.file.empty() && arguments.statements.empty();
  const bool shell =
      none && !context.json && context.stdout_is_terminal && ::isatty(STDIN_FILENO) == 1;
  Result<sql::ScriptPtr> script = sql::ScriptPtr();
  if (!shell) script = ReadScript(arguments);
  if (!script.ok()) return PrintError(script.status());
  SqlHost host(context, {arguments.engine, arguments.quiet});
  sql::Session session(&host, {arguments.rows});
  if (const Status set = SetVariables(arguments.set, &session); !set.ok()) return PrintError(set);
  if (shell) return RunSqlShell(&session, &host);
  const Status ended = session.Run(*script);
  return ended.ok() ? 0 : PrintError(ended);
}

constexpr const char* kSqlFooter = R"help(Examples:
  shoal sql                                   an interactive shell, on a terminal
  shoal sql nightly.sql
  shoal sql nightly.sql --set day=2026-11-27
  shoal sql -e 'load csv.`people.csv` as t; !desc t;'
  shoal sql -e 'load csv.`people.csv` as t; train t as LogisticRegression.`income` where label="income";'
  shoal sql -e 'load csv.`people.csv` as t; save overwrite t as json.`people.json`;'

Statements are set, load, select, train, predict, register, save, include, connect, create, drop and
!commands (docs/sql.md); in a
shell they stand in single quotes, for their backquotes. `train` runs a job like `shoal train`: it is
listed by `shoal jobs`, has logs, and Ctrl-C stops it. A script with a syntax error does nothing. The
rows of the last statement are printed.)help";

}  // namespace

void AddSql(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<SqlArguments>();
  CLI::App* sub = app.add_subcommand("sql", "Run statements: load, train, predict, save");
  sub->add_option("FILE", arguments->file, "File with statements; -: standard input")
      ->type_name("");
  sub->add_option("-e,--execute", arguments->statements, "Statements in place of a file")
      ->type_name("STATEMENTS");
  sub->add_option("--set", arguments->set, "Set a variable, as `set NAME = \"VALUE\"` does")
      ->type_name("NAME=VALUE");
  sub->add_option("--rows", arguments->rows, "Rows of a result to print; 0: all [20]")
      ->type_name("N");
  AddEngineOption(sub, &arguments->engine);
  sub->add_flag("-q,--quiet", arguments->quiet, "Print results and errors only");
  sub->add_flag("--json")->description("Print events as JSON, one per line; results as \"rows\"");
  sub->footer(kSqlFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return RunSql(context, *arguments); };
  });
}

void AddSqlQuery(CLI::App& app, Run* chosen) {
  CLI::App* sub = app.add_subcommand("sql-query", "Run the query of a session in a sandbox");
  sub->callback([chosen] { *chosen = [](const Context&) { return sql::RunQueryProcess(); }; });
}

}  // namespace shoal::cli
