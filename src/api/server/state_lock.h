// The lock of a server's state directory: of two servers on one directory, or of a server and a
// restore, the second is refused.
#pragma once

#include <filesystem>

#include "base/file.h"
#include "base/status.h"

namespace shoal::api {

// Held while the descriptor is open. FailedPrecondition names the process that holds it.
Result<UniqueFd> LockState(const std::filesystem::path& state);

}  // namespace shoal::api
