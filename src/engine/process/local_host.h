// For engines whose tasks all run on this machine: what it is called, and that there is no other.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine {

// By gethostname; empty if the system does not say.
std::string LocalHostName();

// FailedPrecondition if `task` is not to be started on this machine. `engine`: its name.
Status CheckHostNotExcluded(const std::string& engine, const DesiredTask& task);

}  // namespace shoal::engine
