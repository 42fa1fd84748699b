#include "cli/sql/shell/shell.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "cli/sql/shell/line_editor.h"
#include "cli/terminal/report.h"
#include "controller/files/state_home.h"
#include "sql/complete/complete.h"
#include "sql/syntax/parser.h"

namespace shoal::cli {
namespace {

constexpr const char* kHelp =
    R"help(Statements end with a semicolon and may have several lines (docs/sql.md).

  Tab      completes names of tables, columns, algorithms, parameters and files
  Up, Down earlier statements; Ctrl-R searches them
  Ctrl-C   drops the text, or stops the statement that runs
  Ctrl-D   ends the shell, as exit and \q do

  \timing  shows or hides the time that statements take
  \history lists earlier statements
  \?       this text
)help";

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool IsShellCommand(const std::string& text) {
  const std::string word = text.ends_with(';') ? text.substr(0, text.size() - 1) : text;
  return text.starts_with('\\') || word == "exit" || word == "quit" || word == "help";
}

// A terminal that understands the editor's sequences.
bool CanEdit() {
  const char* const terminal = std::getenv("TERM");
  return terminal != nullptr && std::string(terminal) != "dumb" && *terminal != 0;
}

class Shell {
 public:
  Shell(sql::Session* session, SqlHost* host, History history)
      : session_(*session), host_(*host), history_(std::move(history)) {}

  int Run() {
    PrintNote("statements end with a semicolon; \\? tells more, exit ends");
    std::string text;
    while (Read(&text)) {
      const std::string input = Trimmed(text);
      if (input.empty()) continue;
      // A history that cannot be kept is told once.
      const Status kept = history_.Add(text);
      if (!kept.ok() && !std::exchange(history_failed_, true)) PrintError(kept);
      if (IsShellCommand(input)) {
        if (!RunCommand(input)) return code_;
        continue;
      }
      RunStatements(input);
    }
    return code_;
  }

 private:
  bool Read(std::string* text) {
    if (!CanEdit()) return ReadPlainly(text);
    const RawTerminal raw;
    host_.ForgetStop();
    LineEditor editor(raw.terminal([this] { return host_.Stopped(); }),
                      {"shoal> ", "    -> ", IsCompleteInput,
                       [this](const std::string& line, size_t cursor) {
                         sql::Completion completion = sql::Complete(line, cursor, session_.state());
                         return std::pair(completion.begin, std::move(completion.candidates));
                       }},
                      &history_);
    const EditEnd end = editor.Read(text);
    if (end == EditEnd::kInterrupted) text->clear();
    return end != EditEnd::kEndOfInput;
  }

  static bool ReadPlainly(std::string* text) {
    text->clear();
    std::cout << "shoal> " << std::flush;
    for (std::string line; std::getline(std::cin, line);) {
      *text += (text->empty() ? "" : "\n") + line;
      if (Trimmed(*text).empty() || IsCompleteInput(*text)) return true;
      std::cout << "    -> " << std::flush;
    }
    return !text->empty();
  }

  // False to end the shell.
  bool RunCommand(std::string word) {
    if (word.ends_with(';')) word.pop_back();
    if (word == "\\q" || word == "exit" || word == "quit") return false;
    if (word == "\\timing") {
      timing_ = !timing_;
      Print(timing_ ? "times are shown\n" : "times are not shown\n");
    } else if (word == "\\history") {
      std::string list;
      for (const std::string& entry : history_.entries()) list += entry + "\n";
      Print(list);
    } else if (word == "\\?" || word == "help" || word == "\\h") {
      Print(kHelp);
    } else {
      PrintError(InvalidArgument("there is no command " + word.substr(0, 64) +
                                 "; \\? lists those of the shell"));
    }
    return true;
  }

  void RunStatements(const std::string& input) {
    host_.ForgetStop();
    const TimePoint begin = RealClock::Get()->Now();
    const Status ended = session_.Run(std::make_shared<const sql::ScriptText>("shell", input));
    if (!ended.ok()) PrintError(ended);
    if (timing_) Print("(" + FormatDuration(RealClock::Get()->Now() - begin) + ")\n");
  }

  void Print(std::string_view text) {
    const Status printed = PrintOut(text);
    if (!printed.ok()) code_ = PrintError(printed);
  }

  sql::Session& session_;
  SqlHost& host_;
  History history_;
  bool history_failed_ = false;
  bool timing_ = false;
  int code_ = 0;
};

}  // namespace

bool IsCompleteInput(const std::string& text) {
  const std::string input = Trimmed(text);
  if (input.empty() || IsShellCommand(input)) return true;
  if (input.front() == '!' && input.find('\n') == std::string::npos) return true;
  if (input.back() != ';') return false;
  // A semicolon within quotes or a comment ends nothing; other errors are shown by running it.
  const auto checked = sql::CheckScript(sql::ScriptText("shell", input));
  return checked.ok() || checked.status().message().find("is not closed") == std::string::npos;
}

int RunSqlShell(sql::Session* session, SqlHost* host) {
  const Result<std::filesystem::path> home = controller::FindStateHome();
  if (!home.ok()) return PrintError(home.status());
  Result<History> history = History::Open(*home / "sql_history");
  if (!history.ok()) return PrintError(history.status());
  return Shell(session, host, std::move(*history)).Run();
}

}  // namespace shoal::cli
