#include "import/kubernetes/operator_files.h"

#include <algorithm>
#include <cctype>

#include "import/conversion/job_builder.h"

namespace shoal::importer {
namespace {

// True if the path at `at` ends there: "/etc/mpi/hostfile.old" is another one.
bool EndsAt(const std::string& text, size_t at) {
  const auto c = static_cast<unsigned char>(at < text.size() ? text[at] : ' ');
  return std::isalnum(c) == 0 && c != '_' && c != '-' && c != '.';
}

std::string MovedInScript(const std::string& script, std::string_view path,
                          const std::string& variable) {
  std::string moved;
  char quote = 0;
  for (size_t i = 0; i < script.size(); ++i) {
    if (script.compare(i, path.size(), path) == 0 && EndsAt(script, i + path.size())) {
      const std::string_view around = quote == '\'' ? "'\"" : quote == 0 ? "\"" : "";
      moved += std::string(around) + "$" + variable;
      moved += std::string(around.rbegin(), around.rend());
      i += path.size() - 1;
      continue;
    }
    const char c = script[i];
    moved += c;
    if (c == '\\' && quote != '\'' && i + 1 < script.size()) {
      moved += script[++i];
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    }
  }
  return moved;
}

// True if the text calls the program: a word of a script, or of a command.
bool CallsProgram(const std::string& text, std::string_view program) {
  constexpr std::string_view kBefore = " \t\n;|&(`\"'=!{";
  constexpr std::string_view kBehind = " \t\n\"'\\";
  for (size_t at = text.find(program); at != text.npos; at = text.find(program, at + 1)) {
    const size_t end = at + program.size();
    if ((at == 0 || kBefore.find(text[at - 1]) != kBefore.npos) &&
        (end == text.size() || kBehind.find(text[end]) != kBehind.npos)) {
      return true;
    }
  }
  return false;
}

bool IsShell(const std::vector<std::string>& command) {
  static const std::vector<std::string> kShells = {"sh", "bash", "dash", "/bin/sh", "/bin/bash"};
  return command.size() >= 3 && command[1].starts_with("-") && command[1].ends_with("c") &&
         std::find(kShells.begin(), kShells.end(), command[0]) != kShells.end();
}

}  // namespace

bool CommandContains(const job::Role& role, std::string_view text) {
  return std::ranges::any_of(role.command,
                             [&](const std::string& word) { return word.find(text) != word.npos; });
}

bool CommandCalls(const job::Role& role, std::string_view program) {
  return std::ranges::any_of(role.command,
                             [&](const std::string& word) { return CallsProgram(word, program); });
}

void MovePath(std::string_view path, const std::string& variable, job::Role* role) {
  std::vector<std::string>& command = role->command;
  if (!CommandContains(*role, path)) return;
  const bool later =
      std::any_of(command.begin() + std::min<ptrdiff_t>(3, std::ssize(command)), command.end(),
                  [&](const std::string& word) { return word.find(path) != word.npos; });
  if (IsShell(command) && !later) {
    command[2] = MovedInScript(command[2], path, variable);
    return;
  }
  std::string line = "exec";
  for (const std::string& word : command) {
    line += " '";
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += "'";
  }
  command = {"sh", "-c", MovedInScript(line, path, variable)};
}

void PutBeforeCommand(const std::string& statement, job::Role* role) {
  if (!IsShell(role->command)) return PrependStatement(statement, role);
  role->command[2] = statement + "\n" + role->command[2];
}

}  // namespace shoal::importer
