// From the command line to the subcommand that was meant.
#pragma once

#include <memory>
#include <string>

#include "cli/command.h"

namespace CLI {
class App;
}

namespace shoal::cli {

// The whole of `shoal`: parses, runs, gives the exit code.
int Main(int argc, const char* const* argv);

// The command line's tables with all subcommands (hidden ones too if `hidden`); `completion` reads
// them. `chosen` outlives the app.
std::shared_ptr<CLI::App> MakeApp(bool hidden, Run* chosen);

}  // namespace shoal::cli
