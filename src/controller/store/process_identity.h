// Liveness of the process that owns a job, also across PID namespaces and machines that share the
// state home.
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "controller/store/job_record.h"

namespace shoal::controller {

// The identity of the calling process.
Result<ProcessIdentity> CurrentProcess();

// True if `process` has or had the calling process's PID namespace and boot, so its pid may be
// looked up and signalled. For a record without a namespace the boot alone decides.
bool SharesPids(const ProcessIdentity& process);

// Boot id and PID namespace as one word, for a file name or a column. An earlier version of shoal
// reads it as the boot id of another machine, whose processes it judges by their locks alone.
std::string FormatProcessScope(const ProcessIdentity& process);
// Parses the word of FormatProcessScope, or a bare boot id.
void ParseProcessScope(std::string_view realm, ProcessIdentity* process);

// A lock that shows every process with access to the state home that its holder lives: flock on
// controllers/SCOPE-PID-START (between hosts on NFS from version 4 and similar file systems). The
// kernel releases it when the process ends. The destructor removes the file.
class LivenessLock {
 public:
  static Result<LivenessLock> Make(const std::filesystem::path& root,
                                   const ProcessIdentity& process);
  LivenessLock(LivenessLock&&) = default;
  LivenessLock& operator=(LivenessLock&&) = delete;
  ~LivenessLock();

 private:
  LivenessLock(std::filesystem::path path, UniqueFd file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  UniqueFd file_;
};

// True if a job's owner lives. The lock decides, on whatever machine the owner runs; a file that
// cannot be opened counts as locked. An owner of this PID namespace whose file was deleted is
// looked up by pid and start time. A zombie is dead.
bool IsAlive(const std::filesystem::path& root, const ProcessIdentity& process);

// Interval at which the owner of jobs touches its lock file …
inline constexpr Duration kLivenessRefreshInterval = std::chrono::seconds(5);
// … and the age of the last touch from which it counts as frozen (Ctrl-Z, SIGSTOP, a paused
// container).
inline constexpr Duration kFrozenAfter = 3 * kLivenessRefreshInterval;
void RefreshLivenessLock(const std::filesystem::path& root, const ProcessIdentity& self);
// False if the owner's last touch is older than kFrozenAfter relative to the last touch of `self`.
// Both times come from the file system, so clocks of different machines do not matter. True if one
// of them cannot be read.
bool IsResponsive(const std::filesystem::path& root, const ProcessIdentity& owner,
                  const ProcessIdentity& self);

// Removes the lock file of a killed process.
void RemoveLivenessLock(const std::filesystem::path& root, const ProcessIdentity& process);

// Removes the lock files that no process holds, of those killed before a job named them. Files
// younger than kFrozenAfter stay: their makers may be about to lock them.
void RemoveDeadLivenessLocks(const std::filesystem::path& root);

}  // namespace shoal::controller
