// The local engine's mode without a shared file system (LocalEngineOptions::no_shared_filesystem),
// for tests: tasks run as if each were on a host of its own. Each incarnation has an empty
// directory, and the coordinator a fixed port. Used by local_job.cc.
//
//   JOBDIR/apart/seed/<name>                        DesiredJob::bootstrap_files
//   JOBDIR/apart/port                               the coordinator's port
//   JOBDIR/apart/<role>-<index>.<incarnation>/      directory of one incarnation
//
// SHOAL_APART_HOSTS in the engine's environment is a comma-separated list of simulated host names;
// without it all tasks are on this machine.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine {

// Creates the bootstrap files and chooses the port, unless they exist already.
Status CreateIsolatedDirs(const DesiredJob& desired);
// Unavailable before CreateIsolatedDirs.
Result<uint16_t> IsolatedCoordinatorPort(const std::string& job_dir);
// Creates an empty directory for the incarnation and returns the task with its placeholders
// replaced.
Result<DesiredTask> IsolateTask(const std::string& job_dir, const DesiredTask& task,
                                int incarnation);
// Removes the files. No task of the job may run.
void RemoveIsolatedDirs(const std::string& job_dir);

}  // namespace shoal::engine
