// That a job's controller still removes what is left of a job whose end is recorded: a lock on a
// file of the job's directory, which goes with the controller however that ends.
#pragma once

#include <filesystem>

#include "base/file.h"

namespace shoal::controller {

// Locked until Cleared. Without the lock where the file cannot be made: nobody waits then.
UniqueFd BeginClearing(const std::filesystem::path& job_dir);
// Gives the lock back, and removes the file.
void Cleared(const std::filesystem::path& job_dir, UniqueFd lock);
// Whether somebody holds it.
bool IsClearing(const std::filesystem::path& job_dir);

}  // namespace shoal::controller
