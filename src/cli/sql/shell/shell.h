// The interactive shell of `shoal sql` on a terminal.
#pragma once

#include <string>

#include "cli/sql/sql_host.h"
#include "sql/session/session.h"

namespace shoal::cli {

// Whether a text is to be run when Enter is pressed: it ends with a semicolon outside of quotes, or
// is a command of the shell (\timing, exit) or a single line that begins with '!'.
bool IsCompleteInput(const std::string& text);

// Reads and runs statements until the end of input. Returns the exit code: 0, or that of an output
// that cannot be written.
int RunSqlShell(sql::Session* session, SqlHost* host);

}  // namespace shoal::cli
