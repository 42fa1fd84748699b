// Paths of an engine's own files in a job's directory, for engines whose tasks see that directory
// (docs/formats/engine-records.md).
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace shoal::engine {

std::filesystem::path EngineDir(const std::string& job_dir);
// The log of a launcher's or coordinator's own output.
std::filesystem::path TaskLogPath(const std::string& job_dir, const std::string& role, int index);

// The lock of a job on engines whose processes belong to a machine: an flock on a file in
// EngineDir. The engine that holds it manages the job. A server that has taken over from a frozen
// one replaces the file (BreakJobLock), so an engine compares its file with the present one before
// it starts a task. Plain value.
class JobLock {
 public:
  // Not held if another engine manages the job.
  static Result<JobLock> Take(const std::string& job_dir);
  JobLock() = default;
  // Whether it was taken and is not broken. Costs two system calls.
  bool held() const;
  // Removes the file, unless the lock is broken.
  void Remove() const;

 private:
  std::filesystem::path path_;
  UniqueFd file_;
};
// Lets the next engine manage the job, although the process of the last one lives. Only for the
// server that leads (controller/store/lease.h): it has proved to the store that the other does not.
Status BreakJobLock(const std::string& job_dir);

// Finds the directory of a job that another controller process started, by the job's id; the
// engine's records are in it. Empty if it is not known.
using FindJobDir = std::function<std::string(const std::string& job_id)>;

// The last `limit` bytes of a file; empty if there is no such file.
Result<std::string> ReadTail(const std::filesystem::path& path, size_t limit);

}  // namespace shoal::engine
