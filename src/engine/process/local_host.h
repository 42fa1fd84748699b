// Name of this machine and the check of excluded hosts, for engines whose tasks all run here.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine {

// The result of gethostname; empty if it fails.
std::string LocalHostName();

// FailedPrecondition if `task` excludes this machine. `engine` is the engine's name for the
// message.
Status CheckHostNotExcluded(const std::string& engine, const DesiredTask& task);

}  // namespace shoal::engine
