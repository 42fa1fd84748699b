// Registration functions of the commands about tables of a server; listed in command_table.cc.
#pragma once

#include "cli/command.h"

namespace shoal::cli {

void AddCatalog(CLI::App& app, Run* chosen);
void AddLineage(CLI::App& app, Run* chosen);
void AddGate(CLI::App& app, Run* chosen);  // hidden: servers start it

}  // namespace shoal::cli
