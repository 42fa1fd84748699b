// Whether the process that owned a job still lives, also if it runs in another PID namespace or on
// another machine that shares the state home.
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "controller/store/job_record.h"

namespace shoal::controller {

// Of the calling process.
Result<ProcessIdentity> CurrentProcess();

// True if `process` is, or was, in the calling process's PID namespace and boot: its pid may be
// looked up and signalled. Of a record without a namespace the boot alone decides.
bool SharesPids(const ProcessIdentity& process);

// The boot and the PID namespace in one word, for a file's name or a column: what an earlier shoal
// takes for the boot of another machine, whose processes it judges by their locks alone.
std::string FormatProcessScope(const ProcessIdentity& process);
// Reads FormatProcessScope's word, and a boot id alone.
void ParseProcessScope(std::string_view realm, ProcessIdentity* process);

// A lock by which every process that sees the state home can tell that this one lives: flock on
// controllers/REALM-PID-START (between hosts on NFS from version 4 and the like). The kernel drops
// it with the process. Destroying the mark removes the file.
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

// Whether a job's owner lives. Its mark's lock decides, wherever the owner runs; a mark that cannot
// be opened counts as held. Only an owner of this PID namespace whose mark somebody has removed is
// looked up by its pid and start time. A zombie is dead.
bool IsAlive(const std::filesystem::path& root, const ProcessIdentity& process);

// A process that owns jobs touches its mark so often ...
inline constexpr Duration kLivenessRefreshInterval = std::chrono::seconds(5);
// ... and one that has not for so long is frozen (Ctrl-Z, SIGSTOP, a paused container).
inline constexpr Duration kFrozenAfter = 3 * kLivenessRefreshInterval;
void RefreshLivenessLock(const std::filesystem::path& root, const ProcessIdentity& self);
// False if the owner has not touched its mark for kFrozenAfter when `self` touched its own. Both
// are the file system's times, so the clocks of several machines do not matter. True if one of them
// cannot be read.
bool IsResponsive(const std::filesystem::path& root, const ProcessIdentity& owner,
                  const ProcessIdentity& self);

// Removes the mark that a killed process has left.
void RemoveLivenessLock(const std::filesystem::path& root, const ProcessIdentity& process);

}  // namespace shoal::controller
