// The type of a subcommand of `shoal`. Each has one thin file that declares its options and the
// function to run; command_table.cc lists them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shoal::cli {

// Arguments of every subcommand.
struct Context {
  std::string
      program;        // absolute path of this binary, to start coordinators, launchers and trainers
  bool json = false;  // --json: print JSON, one event per line
  bool stdout_is_terminal = false;
  bool stderr_is_terminal = false;
  std::string server;  // --server, as given; empty: as the environment and the login say
  std::vector<std::string>
      passthrough_args;  // the words that Command::count_own_args left to another program
};

// The function of the chosen subcommand; returns the exit code (design.md §12).
using Run = std::function<int(const Context&)>;

// Adds a subcommand to `app`, whose callback sets `chosen`.
using AddCommand = void (*)(CLI::App& app, Run* chosen);

struct Command {
  const char* name;
  const char* group;  // "Train", "Jobs", "Models", "Machine"; "" hides it from --help
  AddCommand add;
  // For a command whose line ends with another program's command line: the number of arguments of
  // argv, including this program's name, that belong to the command itself. nullptr: all.
  int (*count_own_args)(int argc, const char* const* argv) = nullptr;
  // Whether it works on the jobs of a server too: it gets --server.
  bool uses_server = false;
};

// Number of arguments up to and including "--", for Command::count_own_args.
int CountArgsBeforeCommand(int argc, const char* const* argv);

// All subcommands, in the order of --help.
const std::vector<Command>& Commands();

}  // namespace shoal::cli
