// The internal commands `shoal marathon …`, started by Marathon inside a Mesos task:
//
//   hold DIR ROLE    an executor, one instance of a role's app (executor.cc): acquires a slot of
//   the
//                    role, runs its launcher, and keeps the slot after the launcher's end
//   health DIR ROLE  the health check of such an instance (health_check.cc)
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace shoal::engine::marathon {

// Runs `shoal marathon WORDS`; returns its exit code. InvalidArgument for unknown words.
Result<int> RunHelper(const std::vector<std::string>& words);

// The command `hold`.
Result<int> RunExecutor(const std::string& job_dir, const std::string& role);

// The command `health`: 0 if the program of this Mesos task is healthy or none runs now.
Result<int> RunHealth(const std::string& job_dir, const std::string& role);

// ---- Files in the job's directory, shared by engine and executors (docs/formats/marathon.md) ----

// The directory of slot files. The executor that owns the slot of task `index` holds a lock (flock)
// on the slot's file and appends the task's events to it (engine/agent/desired_state.h); in them
// `node` is the Mesos task and `order` the task's revision.
std::filesystem::path SlotsDir(const std::string& job_dir);
std::filesystem::path SlotPath(const std::string& job_dir, const std::string& role, int index);

// The environment without the variables of Marathon and Mesos, except for MESOS_SANDBOX and
// MESOS_TASK_ID.
std::vector<std::string> WithoutMarathon(const std::vector<std::string>& environment);

}  // namespace shoal::engine::marathon
