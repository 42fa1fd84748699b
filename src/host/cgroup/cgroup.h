// Control groups of tasks: `…/shoal/<job>/<task>`, with limits on memory, processor and processes.
//
// Made by ProcessTree for a task with limits; the local engine and `shoal doctor` find what was
// left behind by name. Version 2, or version 1's controllers with a version 2 group beside them
// for cgroup.kill ("hybrid").
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "job/spec/job.h"

namespace shoal::host {

enum class CgroupVersion : uint8_t { kNone, kV1, kV2 };

// Where groups can be made on this machine: for each hierarchy the directory below which we make
// `shoal/`. Empty paths: not available.
struct CgroupLayout {
  CgroupVersion version = CgroupVersion::kNone;  // of the controllers
  std::filesystem::path memory;                  // v2: the same directory thrice
  std::filesystem::path cpu;
  std::filesystem::path pids;
  std::filesystem::path unified;  // a v2 hierarchy: cgroup.kill and cgroup.procs
  std::filesystem::path freezer;  // v1 only: for killing where there is no cgroup.kill

  bool any() const;
  // All different base directories.
  std::vector<std::filesystem::path> Bases() const;
};

// Reads /proc/self/mountinfo and /proc/self/cgroup, and tries for each hierarchy our own group and
// then its ancestors: the first below which a group can be made. `root` is put before every path
// that is opened (tests give a directory tree of their own). Makes and removes a probe directory.
CgroupLayout FindCgroups(const std::filesystem::path& root = "/");

// The groups that we are in ourselves, whether or not we may make others below them: whose limits
// hold for us.
CgroupLayout OwnCgroups(const std::filesystem::path& root = "/");

struct CgroupLimits {
  double cpu = 0;            // cores; 0: none
  int64_t memory_bytes = 0;  // 0: none
  int64_t pids = 0;          // processes and threads; 0: none
};

// One task's group in all hierarchies. Removes itself when destroyed (killing what is in it).
// Movable; not thread-safe.
class Cgroup {
 public:
  // Makes shoal/<job>/<task>; what is left of an earlier one of that name is killed and removed
  // first. Names are of letters, digits, '-', '_' and '.' (others become '_'). Limits for which
  // the machine has no controller are left out: see memory_enforced().
  static Result<Cgroup> Create(const CgroupLayout& layout, std::string_view job,
                               std::string_view task, const CgroupLimits& limits);
  Cgroup() = default;
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&& other) noexcept;
  ~Cgroup();

  bool exists() const { return !directories_.empty(); }
  bool memory_enforced() const { return memory_enforced_; }

  // Files to which a process writes "0" to enter (in each hierarchy), opened with O_CLOEXEC. v1:
  // `tasks` (moving a process with one thread through it does not wait for a grace period).
  Result<std::vector<UniqueFd>> OpenEntries() const;
  // The v2 directory for clone3(CLONE_INTO_CGROUP); -1 without one.
  UniqueFd OpenUnified() const;

  // Processes of the group that the kernel killed because its memory was exhausted.
  int64_t OomKills() const;
  int64_t MemoryPeak() const;  // bytes; 0 if unknown
  int64_t MemoryNow() const;   // bytes, page cache included; 0 if unknown
  double CpuSeconds() const;   // 0 if unknown
  std::vector<int> Pids() const;

  // SIGKILL for everything inside, through cgroup.kill or freeze–kill–thaw, until it is empty or
  // `limit` has passed.
  Status Kill(std::chrono::milliseconds limit = std::chrono::seconds(5));

 private:
  void Remove();
  std::vector<std::filesystem::path> directories_;  // one a hierarchy, memory's first if any
  std::filesystem::path memory_;
  std::filesystem::path cpu_;
  std::filesystem::path unified_;
  std::filesystem::path freezer_;
  CgroupVersion version_ = CgroupVersion::kNone;
  bool memory_enforced_ = false;
};

// `bases`: CgroupLayout::Bases(), or those that were recorded.
// Names of the jobs that have groups below any base, sorted.
std::vector<std::string> JobsWithCgroups(const std::vector<std::filesystem::path>& bases);
// Pids in any group of the job.
std::vector<int> PidsInCgroupsOf(const std::vector<std::filesystem::path>& bases,
                                 std::string_view job);
// Kills what is in the groups of a job and removes them. OK if there are none.
Status RemoveCgroupsOf(const std::vector<std::filesystem::path>& bases, std::string_view job,
                       std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace shoal::host
