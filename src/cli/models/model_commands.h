// Registration functions of the commands about the registry of models and models in service.
#pragma once

#include "cli/command.h"

namespace shoal::cli {

void AddMap(CLI::App& app, Run* chosen);
void AddModels(CLI::App& app, Run* chosen);
void AddPublish(CLI::App& app, Run* chosen);
void AddRollback(CLI::App& app, Run* chosen);

}  // namespace shoal::cli
