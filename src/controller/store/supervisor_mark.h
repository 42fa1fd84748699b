// Marks of supervisors in the state home. Jobs whose dead owner has a mark wait for the next
// supervisor, which continues them; other commands do not record them as failed.
//
//     HOME/supervisors/SCOPE-PID-START
#pragma once

#include <filesystem>

#include "base/status.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"

namespace shoal::controller {

// Written before the supervisor owns a job. Durable.
Status MarkSupervisor(const std::filesystem::path& root, const ProcessIdentity& self);
// True if the process is or was a supervisor of this state home.
bool IsSupervisor(const std::filesystem::path& root, const ProcessIdentity& process);
// Removes the marks of earlier supervisors that own no unfinished job any more.
Status RemoveUnusedMarks(const std::filesystem::path& root, const ProcessIdentity& self,
                         Store* store);

}  // namespace shoal::controller
