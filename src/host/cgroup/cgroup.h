// Control groups of tasks: `…/shoal/<job>/<task>`, with limits on memory, processor and processes.
//
// Created by ProcessTree for a task with limits. The local engine and `shoal doctor` find remaining
// groups by name. Version 2, or version 1's controllers with a version 2 group beside them
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

// Where groups can be created on this machine: for each hierarchy the parent directory of `shoal/`.
// Empty paths: not available.
struct CgroupLayout {
  CgroupVersion version = CgroupVersion::kNone;  // of the controllers
  std::filesystem::path memory;                  // in v2 all three are the same directory
  std::filesystem::path cpu;
  std::filesystem::path pids;
  std::filesystem::path unified;  // a v2 hierarchy: cgroup.kill and cgroup.procs
  std::filesystem::path freezer;  // v1 only: used to kill where cgroup.kill is missing

  bool any() const;
  // All different base directories.
  std::vector<std::filesystem::path> Bases() const;
};

// Reads /proc/self/mountinfo and /proc/self/cgroup. For each hierarchy it tries this process's
// group and then its ancestors, and takes the first below which a group can be created. `root`
// prefixes every opened path (for tests). Creates and removes a probe directory.
CgroupLayout FindCgroups(const std::filesystem::path& root = "/");

// The groups of this process, whose limits apply to it, whether or not groups can be created below
// them.
CgroupLayout OwnCgroups(const std::filesystem::path& root = "/");

// Limits of a task.
struct CgroupLimits {
  double cpu = 0;            // cores; 0: none
  int64_t memory_bytes = 0;  // 0: none
  int64_t pids = 0;          // processes and threads; 0: none
};

// A task's group in all hierarchies. The destructor kills its processes and removes it. Movable;
// not thread-safe.
class Cgroup {
 public:
  // Creates shoal/<job>/<task>. An earlier group of that name is killed and removed first. In
  // names, characters other than letters, digits, '-', '_' and '.' become '_'. Limits without a
  // controller on this machine are not set: see memory_enforced().
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

  // Kills all processes in the group, by cgroup.kill or by freeze, kill and thaw. Returns when the
  // group is empty or `limit` has passed.
  Status Kill(std::chrono::milliseconds limit = std::chrono::seconds(5));

 private:
  void Remove();
  std::vector<std::filesystem::path> directories_;  // one per hierarchy, memory's first if any
  std::filesystem::path memory_;
  std::filesystem::path cpu_;
  std::filesystem::path unified_;
  std::filesystem::path freezer_;
  CgroupVersion version_ = CgroupVersion::kNone;
  bool memory_enforced_ = false;
};

// `bases` in the following: CgroupLayout::Bases(), or recorded ones.
// Names of the jobs that have groups below any base, sorted.
std::vector<std::string> JobsWithCgroups(const std::vector<std::filesystem::path>& bases);
// Pids in any group of the job.
std::vector<int> PidsInCgroupsOf(const std::vector<std::filesystem::path>& bases,
                                 std::string_view job);
// Kills the processes in a job's groups and removes the groups. OK if there are none.
Status RemoveCgroupsOf(const std::vector<std::filesystem::path>& bases, std::string_view job,
                       std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace shoal::host
