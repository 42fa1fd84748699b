// What the tasks of a job wrote to $SHOAL_OUTPUT: kept by attempt in the job's directory where the
// job file names no directory for it (`shoal outputs`), else in that one.
//
//   JOBDIR/outputs/<role>-<index>.<attempt>/…
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

struct OutputFile {
  std::string task;  // "worker-1"
  int attempt = 0;
  std::string path;  // below the attempt's directory
  int64_t bytes = 0;
  bool link = false;  // a symbolic link, which is not followed
};

// By task, attempt and path. Empty if there are none. Directories are not listed. ResourceExhausted
// beyond a million.
Result<std::vector<OutputFile>> ListOutputs(const std::filesystem::path& job_dir);

// Where controller and tasks share no directory, an output that the job names was written to
// JOBDIR/outputs/<role>-<index>.<attempt>/<name>: copies it to the directory that the job file
// says, of the last attempt of the first task (by role and index) that has it. Files there are
// replaced as WriteOutputFile does, others stay. All that can be placed are, whatever happens to
// one. NotFound names an output that no task has written; any other error one that was written and
// could not be placed, and is still where it was.
Status PlaceOutputs(const std::filesystem::path& job_dir,
                    const std::map<std::string, std::string>& outputs);
// Fails a job that succeeded and whose outputs were written but could not be brought or placed, as
// `status` says; one that no task has written (NotFound) does not.
void FailOnLostOutputs(const Status& status, rendezvous::Verdict* verdict);

// A sentence for each of the outputs (name, absolute directory) that this machine does not have:
// their programs wrote nothing, or to a file system that only their hosts have. A job's end is told
// without claiming these.
std::vector<std::string> MissingOutputs(const std::map<std::string, std::string>& outputs);

// Copies these, as `directory`/<task>.<attempt>/<path>, links as links. AlreadyExists names a file
// that is there.
Status CopyOutputs(const std::filesystem::path& job_dir, const std::vector<OutputFile>& outputs,
                   const std::filesystem::path& directory);

}  // namespace shoal::controller
