// /dev/shm of a job's tasks on this host: a directory per job below the machine's /dev/shm, mounted
// in its place for the job's programs (process_tree.h). Tasks of one job share memory by name,
// other jobs do not see it, and it is removed with the job's last process tree.
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
// In a program's environment: it sees the machine's /dev/shm. Needed to share memory with programs
// outside of the job.
inline constexpr const char* kHostSharedMemorySetting = "SHOAL_SHARED_MEMORY=host";

// Movable.
class JobSharedMemory {
 public:
  // Creates the directory or joins the job's other trees. The first call of a process also removes
  // directories that killed launchers of this user left.
  static Result<JobSharedMemory> Open(const std::string& job_id,
                                      const std::filesystem::path& root = kSharedMemoryRoot);
  JobSharedMemory() = default;  // holds no directory
  JobSharedMemory(JobSharedMemory&& other) noexcept { *this = std::move(other); }
  JobSharedMemory& operator=(JobSharedMemory&& other) noexcept;
  // Removes the directory unless another tree of the job uses it.
  ~JobSharedMemory() { Release(); }

  const std::filesystem::path& path() const { return path_; }  // empty: none

 private:
  void Release();
  std::filesystem::path path_;
  UniqueFd lock_;
};

// A directory that no tree uses: its launcher was killed.
struct OrphanedSharedMemory {
  std::string job;
  std::filesystem::path path;
  int64_t bytes = 0;
};
// Orphaned directories of this user, sorted by job; removes them if `remove` is set.
std::vector<OrphanedSharedMemory> FindOrphanedSharedMemory(
    bool remove, const std::filesystem::path& root = kSharedMemoryRoot);

// Whether a program with this command needs the machine's /dev/shm: its arguments, directory or
// environment contain a path there, its environment contains kHostSharedMemorySetting, or CUDA's
// multi-process service, which shares memory with its clients, runs here.
bool NeedsHostSharedMemory(const std::vector<std::string>& argv,
                           const std::vector<std::string>& env, const std::string& work_dir);

// System V shared memory (shmget) of this user that no process is attached to. A process tree in a
// PID namespace removes its own.
struct SystemVMemory {
  int segments = 0;
  int64_t bytes = 0;
};
SystemVMemory FindDetachedSystemVMemory();

// The first pid of a new tree's PID namespace. Different for every tree of this machine, so that
// files which programs name by host and pid do not collide. 0 if the range of pids is unknown.
int FirstProcessNumber();

}  // namespace shoal::host
