// /dev/shm of a job's tasks on this host: a directory of the job's own below the machine's, which
// its programs see in its place (process_tree.h), so that tasks of one job share memory by name,
// those of others do not, and what programs leave there goes with the last of them.
//
//   /dev/shm/shoal.<user id>.<job id>      locked (flock, shared) by each of the job's trees
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace shoal::host {

inline constexpr const char* kSharedMemoryRoot = "/dev/shm";
// In a program's environment: it sees the machine's own, as one must that shares memory with
// programs outside of the job.
inline constexpr const char* kHostSharedMemorySetting = "SHOAL_SHARED_MEMORY=host";

// Movable.
class JobSharedMemory {
 public:
  // Makes it, or joins the job's other trees. What dead launchers of this user have left is removed
  // by the first call of a process.
  static Result<JobSharedMemory> Open(const std::string& job_id,
                                      const std::filesystem::path& root = kSharedMemoryRoot);
  JobSharedMemory() = default;  // none
  JobSharedMemory(JobSharedMemory&& other) noexcept { *this = std::move(other); }
  JobSharedMemory& operator=(JobSharedMemory&& other) noexcept;
  // Removes it with its files, unless another tree of the job is left.
  ~JobSharedMemory() { Release(); }

  const std::filesystem::path& path() const { return path_; }  // empty: none

 private:
  void Release();
  std::filesystem::path path_;
  UniqueFd lock_;
};

// One that no tree uses any more: its launcher was killed.
struct OrphanedSharedMemory {
  std::string job;
  std::filesystem::path path;
  int64_t bytes = 0;
};
// This user's, by job. With `remove` they are gone afterwards.
std::vector<OrphanedSharedMemory> FindOrphanedSharedMemory(
    bool remove, const std::filesystem::path& root = kSharedMemoryRoot);

// Whether a program that is started so means the machine's /dev/shm: its command, directory or
// environment names a path there, kHostSharedMemorySetting is in it, or CUDA's multi-process
// service, which shares memory with its clients, runs here.
bool NeedsHostSharedMemory(const std::vector<std::string>& argv,
                           const std::vector<std::string>& env, const std::string& work_dir);

// Memory by System V's calls (shmget) that no process is attached to and this user owns: of
// programs that did not remove it. A tree's own is removed with it where it has a PID namespace.
struct SystemVMemory {
  int segments = 0;
  int64_t bytes = 0;
};
SystemVMemory FindDetachedSystemVMemory();

// The number after which processes of a new tree are numbered: spread over all that there are, and
// another one for each tree of this machine, so that files which programs name by host and process
// do not meet. 0 if it is not known how many there are.
int FirstProcessNumber();

}  // namespace shoal::host
