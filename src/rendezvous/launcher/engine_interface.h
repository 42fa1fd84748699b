// What a launcher learns from its engine and tells it besides the coordinator's messages: by
// environment variables and a file. Used by launcher.cc.
#pragma once

#include <string>

#include "base/clock.h"

namespace shoal::rendezvous {

// The engine's name of this host (SHOAL_NODE), else the host name; empty if it has none.
std::string LocalNodeName();

// The exit code that the engine expects for `exit_code`. Some engines read the exclusion of a host
// from a file, whose name is in job::kExcludedFileVariable, and want 0 then.
int ExitCodeForEngine(int exit_code);

// The time within which an engine signals all processes of a task that it ends, if its variable
// SHOAL_SIGNALS_ALL says that it does; 0 if it signals the launcher alone.
Duration SignalSpread();

}  // namespace shoal::rendezvous
