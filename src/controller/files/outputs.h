// The files that tasks wrote to $SHOAL_OUTPUT. They are kept per attempt in the job's directory
// (`shoal outputs`), or in the directory that the job file names.
//
//     JOBDIR/outputs/<role>-<index>.<attempt>/…
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
  std::string path;  // relative to the attempt's directory
  int64_t bytes = 0;
  bool link = false;  // a symbolic link, which is not followed
};

// Lists files and links (no directories, FIFOs, sockets, devices) ordered by task, attempt and
// path; empty if there are none. ResourceExhausted beyond a million.
Result<std::vector<OutputFile>> ListOutputs(const std::filesystem::path& job_dir);

// Without a shared filesystem, a task writes an output that the job names to
// JOBDIR/outputs/<role>-<index>.<attempt>/<name>. Copies it from the last attempt of the first task
// (by role and index) that has it to the directory named in the job file, replacing existing files
// as WriteOutputFile does, without FIFOs, sockets and devices. Continues after an error with the
// other outputs. NotFound names an output that no task has written; other errors name one that was
// written and could not be copied, which stays in place.
Status PlaceOutputs(const std::filesystem::path& job_dir,
                    const std::map<std::string, std::string>& outputs);
// Turns the verdict of a succeeded job into a failure if `status` says that written outputs could
// not be fetched or copied. An output that no task has written (NotFound) is no failure.
void FailOnLostOutputs(const Status& status, rendezvous::Verdict* verdict);

// A sentence for each output (name, absolute directory) that is missing on this machine: the
// programs wrote nothing, or to a filesystem of their own hosts. The report of the job's end does
// not claim these outputs.
std::vector<std::string> MissingOutputs(const std::map<std::string, std::string>& outputs);

// Copies the files to `directory`/<task>.<attempt>/<path>; links are copied as links. AlreadyExists
// names an existing file.
Status CopyOutputs(const std::filesystem::path& job_dir, const std::vector<OutputFile>& outputs,
                   const std::filesystem::path& directory);

}  // namespace shoal::controller
