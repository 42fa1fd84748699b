// That a job's controller still removes what is left of a job whose end is recorded: a lock on a
// file of the job's directory, which goes with the controller however that ends.
#pragma once

#include <filesystem>

#include "base/file.h"

namespace shoal::controller {

// Locked until ReleaseCleanupLock. Without the lock where the file cannot be made: nobody waits
// then.
UniqueFd AcquireCleanupLock(const std::filesystem::path& job_dir);
// Gives the lock back, and removes the file.
void ReleaseCleanupLock(const std::filesystem::path& job_dir, UniqueFd lock);
// Whether somebody holds it.
bool IsCleanupRunning(const std::filesystem::path& job_dir);

}  // namespace shoal::controller
