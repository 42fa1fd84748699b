// Command lines that go on with another program's. Used by the tables of commands.
#include <string_view>

#include "cli/commands/commands.h"

namespace shoal::cli {

int CountArgsBeforeCommand(int argc, const char* const* argv) {
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") return i + 1;
  }
  return argc;
}

}  // namespace shoal::cli
