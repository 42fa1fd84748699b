// Starts processes of sessions of their own, with exactly the environment, descriptors and signals
// that are said, and watches their ends.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace shoal::engine {

struct SpawnSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // exactly
  std::string work_dir;          // empty: ours
  std::filesystem::path log;     // both outputs are appended to it
  // It is killed when the thread that starts it ends (PR_SET_PDEATHSIG), in whatever way. Takes a
  // fork: for small processes of one thread.
  bool ends_with_us = false;
};

struct Spawned {
  pid_t pid = 0;
  uint64_t start_ticks = 0;
  UniqueFd pidfd;
};

// Returns once the program runs (posix_spawn: nothing of this process is copied, unless it is to
// end with us). Errors name the program, the directory or the log; Unavailable if trying again may
// help.
Result<Spawned> Spawn(const SpawnSpec& spec);

// The part that all such starts share: a session of its own, no signal blocked or ignored, none of
// our descriptors but the first three. Not copyable.
class SessionSpawn {
 public:
  SessionSpawn();
  ~SessionSpawn();
  SessionSpawn(const SessionSpawn&) = delete;
  SessionSpawn& operator=(const SessionSpawn&) = delete;

  // To say what its first three descriptors and its directory are to be.
  posix_spawn_file_actions_t* actions() { return &actions_; }
  // 0, or the errno of posix_spawnp. argv[0] is looked up in PATH. Once.
  int Start(const std::vector<std::string>& argv, const std::vector<std::string>& env, pid_t* pid);

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// The pidfd of a child just started, which nobody has waited for. If there can be none the child is
// killed, and the error names `program`.
Result<UniqueFd> WatchChild(pid_t pid, const std::string& program);

// A pidfd of a process that runs and was started at `start_ticks`; NotFound if it is gone.
Result<UniqueFd> OpenProcess(pid_t pid, uint64_t start_ticks);

// True if the process of a pidfd is a zombie or gone. Does not block.
bool ProcessEnded(int pidfd);

// How a process ended whose pidfd is readable. `wait_status` -1: not known (it was not our child,
// its parent has reaped it already, and the kernel does not tell, before Linux 6.15). False: ask
// again in a moment.
bool ReadEnd(int pidfd, pid_t pid, uint64_t start_ticks, int* wait_status);

Status SignalProcess(int pidfd, int signal);

}  // namespace shoal::engine
