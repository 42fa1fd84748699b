// Starts a process of its own session with a clean environment and a log file. Used by
// local_engine.cc.
#pragma once

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
};

struct Spawned {
  pid_t pid = 0;
  uint64_t start_ticks = 0;
  UniqueFd pidfd;
};

// Returns once the program runs (posix_spawn: nothing of this process is copied). Errors name the
// program, the directory or the log; Unavailable if trying again may help.
Result<Spawned> Spawn(const SpawnSpec& spec);

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
