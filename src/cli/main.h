// Parses the command line and runs the subcommand.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"

namespace CLI {
class App;
}

namespace shoal::cli {

// The main function of `shoal`: parses, runs, returns the exit code.
int Main(int argc, const char* const* argv);

// The parser of the whole command line; `hidden` adds the hidden subcommands. Used by `completion`.
// `chosen` must outlive the app.
std::shared_ptr<CLI::App> MakeApp(bool hidden, Run* chosen);

}  // namespace shoal::cli
