// What runs inside a Mesos task, as `shoal marathon …`; started by Marathon, not by people:
//
//   hold DIR ROLE    one instance of a role's app (holder.cc): takes a place of the role, runs its
//                    launcher, and holds still when that has ended
//   health DIR ROLE  the health check of such an instance (health.cc)
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace shoal::engine::marathon {

// What `shoal marathon WORDS` does; gives its exit code. InvalidArgument for other words.
Result<int> RunHelper(const std::vector<std::string>& words);

// RunHelper's.
Result<int> RunExecutor(const std::string& job_dir, const std::string& role);

// RunHelper's: 0 if the program that this Mesos task holds is well, or none of its runs now.
Result<int> RunHealth(const std::string& job_dir, const std::string& role);

// ---- What engine and holders share: files of the job's directory (docs/formats/marathon.md) ----

// Who of a role holds the place `index` has this file locked (flock); a line for each start and
// end of its task (engine/agent/desired_state.h), of which `node` is the Mesos task and `order` the
// round.
std::filesystem::path SlotsDir(const std::string& job_dir);
std::filesystem::path SlotPath(const std::string& job_dir, const std::string& role, int index);

// The environment without what Marathon and Mesos say to their own, but for MESOS_SANDBOX and
// MESOS_TASK_ID.
std::vector<std::string> WithoutMarathon(const std::vector<std::string>& environment);

}  // namespace shoal::engine::marathon
