// Tasks of this machine that see nothing of the job's directory nor of each other's, as on hosts of
// their own: each incarnation has an empty directory, and the coordinator a port that all know.
// What the tests of jobs "apart" run on (LocalEngineOptions::no_shared_filesystem); used by
// local_job.cc.
//
//   JOBDIR/apart/seed/<name>                        DesiredJob::bootstrap_files
//   JOBDIR/apart/port                               the coordinator's
//   JOBDIR/apart/<role>-<index>.<incarnation>/      a task's own
//
// SHOAL_APART_HOSTS of the engine's environment names the hosts that they are said to be on, with
// commas between; without it there is this machine alone.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine {

// Makes seed and port; what is there already stays.
Status CreateIsolatedDirs(const DesiredJob& desired);
// Unavailable before CreateIsolatedDirs.
Result<uint16_t> IsolatedCoordinatorPort(const std::string& job_dir);
// The task with an empty directory of its own and its marks filled.
Result<DesiredTask> IsolateTask(const std::string& job_dir, const DesiredTask& task,
                                int incarnation);
// When nothing of the job runs any more.
void RemoveIsolatedDirs(const std::string& job_dir);

}  // namespace shoal::engine
