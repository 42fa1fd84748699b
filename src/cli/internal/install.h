// `shoal-task install`, which only that program has (task_main.cc).
#pragma once

#include "cli/command.h"

namespace shoal::cli {

void AddInstall(CLI::App& app, Run* chosen);

}  // namespace shoal::cli
