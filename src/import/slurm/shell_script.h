// What a shell script says, as far as it can be seen without running it: its commands and its
// variables. Used by slurm_script.cc.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::importer {

struct ShellCommand {
  std::vector<std::string> words;  // without quotes; the program first, assignments left out
  int line = 0;                    // 1-based
  bool captured = false;           // its output becomes text: $(…)
};

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::set<std::string> used;      // variables, but for those with a default, ${NAME:-…}
  std::set<std::string> assigned;  // also by export, read and for
  bool arguments = false;          // $1, $@ … outside of functions
};

// O(text). What is in single quotes and in here-documents is not looked at.
ShellScript ParseShellScript(std::string_view script);

}  // namespace shoal::importer
