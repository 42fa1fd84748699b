// `shoal-task install`: only the launcher's own program has it (task_main.cc).
#pragma once

#include "cli/command.h"

namespace shoal::cli {

void AddInstall(CLI::App& app, Run* chosen);

}  // namespace shoal::cli
