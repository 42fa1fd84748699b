// A lock that shows that a controller is still removing the remains of a job whose end is already
// recorded: an flock on a file in the job's directory, which the kernel releases when the
// controller exits.
#pragma once

#include <filesystem>

#include "base/file.h"

namespace shoal::controller {

// Acquires the lock, held until ReleaseCleanupLock. Returns an invalid descriptor if the file
// cannot be made; then nothing waits for the cleanup.
UniqueFd AcquireCleanupLock(const std::filesystem::path& job_dir);
// Removes the file and releases the lock.
void ReleaseCleanupLock(const std::filesystem::path& job_dir, UniqueFd lock);
// True if a process holds the lock.
bool IsCleanupRunning(const std::filesystem::path& job_dir);

}  // namespace shoal::controller
