// Starts processes in sessions of their own, with exactly the given environment and descriptors and
// default signal handling, and observes their ends through pidfds.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/status.h"

namespace shoal::engine {

// What to start. Plain value.
struct SpawnSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // the whole environment
  std::string work_dir;          // empty: this process's
  std::filesystem::path log;     // standard output and error are appended to it
  // With `user`: the caller's descriptors as its first three, instead of `log`.
  std::array<int, 3> fds = {-1, -1, -1};
  // The kernel kills the process when the thread that started it ends (PR_SET_PDEATHSIG). Needs
  // fork: use it only in small single-threaded processes.
  bool ends_with_us = false;
  // Another user, as whom it runs, with no group but the user's, and without the rights of
  // set-user-ID programs (no_new_privs). The log is opened and the directory entered as that user.
  std::optional<UserIds> user = std::nullopt;
};

// A started process. pid and start_ticks identify it across restarts of the controller.
struct Spawned {
  pid_t pid = 0;
  uint64_t start_ticks = 0;
  UniqueFd pidfd;
};

// Returns once the program runs. Uses posix_spawn, or vfork for another user: neither copies
// anything of this process, as ends_with_us does. Errors name the program, the directory or the
// log; Unavailable if a retry may succeed.
Result<Spawned> Spawn(const SpawnSpec& spec);

// posix_spawn with the settings that all starts share: a new session, no signal blocked or ignored,
// no inherited descriptor but the first three. Not copyable.
class SessionSpawn {
 public:
  SessionSpawn();
  ~SessionSpawn();
  SessionSpawn(const SessionSpawn&) = delete;
  SessionSpawn& operator=(const SessionSpawn&) = delete;

  // For the caller to add its first three descriptors and its working directory.
  posix_spawn_file_actions_t* actions() { return &actions_; }
  // Returns 0 or the errno of posix_spawnp. argv[0] is looked up in PATH. May be called once.
  int Start(const std::vector<std::string>& argv, const std::vector<std::string>& env, pid_t* pid);

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// A pidfd of a child that was just started and not waited for yet. If none can be opened the child
// is killed, and the error names `program`.
Result<UniqueFd> WatchChild(pid_t pid, const std::string& program);

// A pidfd of the process that was started at `start_ticks` with this pid; NotFound if it is gone.
Result<UniqueFd> OpenProcess(pid_t pid, uint64_t start_ticks);

// True if the process of a pidfd is a zombie or gone. Does not block.
bool ProcessEnded(int pidfd);

// Reads how a process ended whose pidfd is readable. `wait_status` is -1 if that is unknown: the
// process was not our child, its parent has reaped it, and the kernel is older than 6.15. Returns
// false if the status is not available yet: call again after a short wait.
bool ReadEnd(int pidfd, pid_t pid, uint64_t start_ticks, int* wait_status);

Status SignalProcess(int pidfd, int signal);

}  // namespace shoal::engine
