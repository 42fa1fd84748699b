// The registrations of `shoal sql` and of the hidden commands that run its queries and sessions,
// listed in command_table.cc.
#pragma once

#include "cli/command.h"

namespace shoal::cli {

void AddSql(CLI::App& app, Run* chosen);
void AddSqlQuery(CLI::App& app, Run* chosen);
void AddSqlSession(CLI::App& app, Run* chosen);

}  // namespace shoal::cli
