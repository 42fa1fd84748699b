// Scans a shell script for its commands and variables without running it. Used by slurm_script.cc.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::importer {

// One simple command.
struct ShellCommand {
  std::vector<std::string> words;  // quotes removed; program first; leading assignments left out
  int line = 0;                    // 1-based
  bool captured = false;           // inside $(…)
};

// What was found in a script. Plain data.
struct ShellScript {
  std::vector<ShellCommand> commands;
  std::set<std::string> used;      // variables read without a default (${NAME:-…} is left out)
  std::set<std::string> assigned;  // also by export, read, for
  std::map<std::string, std::string> values;  // what was assigned last, with its own variables
  bool arguments = false;                     // reads $1, $@ … outside of functions
};

// O(text). Single-quoted text and here-documents are not scanned. Never fails: unknown syntax is
// skipped.
ShellScript ParseShellScript(std::string_view script);

}  // namespace shoal::importer
