// Command lines that end with another program's command line.
#include <string_view>

#include "cli/command.h"

namespace shoal::cli {

int CountArgsBeforeCommand(int argc, const char* const* argv) {
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--") return i + 1;
  }
  return argc;
}

}  // namespace shoal::cli
