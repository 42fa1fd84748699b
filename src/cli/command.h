// A subcommand of `shoal`: one file each, thin, listed in commands.h. It declares its options and
// says what to run.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shoal::cli {

// What every subcommand is given.
struct Context {
  std::string program;  // absolute path of this binary, for starting it again as coordinator,
                        // launcher or trainer
  bool json = false;    // --json: data as JSON on standard output, one event a line
  bool stdout_is_terminal = false;
  bool stderr_is_terminal = false;
  std::vector<std::string>
      passthrough_args;  // the words that Command::count_own_args left to another program
};

// What a subcommand leaves behind when it was chosen: runs it and gives the exit code (design.md
// §12).
using Run = std::function<int(const Context&)>;

// Adds one subcommand to `app`; `chosen` is set from its callback.
using AddCommand = void (*)(CLI::App& app, Run* chosen);

struct Command {
  const char* name;
  const char* group;  // "Train", "Jobs", "Models", "Machine"; "" hides it from --help
  AddCommand add;
  // For a command that ends with another program's command line: how many words of argv, this
  // program's name among them, are not that one's. nullptr: all are its own.
  int (*count_own_args)(int argc, const char* const* argv) = nullptr;
};

// All subcommands, in the order in which --help shows them.
const std::vector<Command>& Commands();

}  // namespace shoal::cli
