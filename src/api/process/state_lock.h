// The lock of a server's state directory: of two servers on one directory, or of a server and a
// restore, the second is refused, unless the servers share a store.
#pragma once

#include <filesystem>

#include "base/file.h"
#include "base/status.h"

namespace shoal::api {

// Held while the descriptor is open. `shared`: other servers may hold it too, as those of one store
// do. FailedPrecondition names the process that holds it.
Result<UniqueFd> LockState(const std::filesystem::path& state, bool shared = false);

}  // namespace shoal::api
