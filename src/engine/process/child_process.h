// Processes with pipes: commands of other systems that are run to their end, and those that an
// agent holds.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace shoal::engine {

struct Child {
  pid_t pid = 0;
  UniqueFd pidfd;  // readable once it has ended
  UniqueFd in;     // what it reads; ours to write
  UniqueFd out;    // what it writes, both non-blocking
  UniqueFd err;
};

// Starts a program, looked up in PATH, in a session of its own with exactly `env`. Errors name the
// program; NotFound if there is none.
Result<Child> StartChild(const std::vector<std::string>& argv, const std::vector<std::string>& env);

// Likewise with descriptors of the caller's as its first three; in, out and err are none.
// `work_dir`: where it starts; empty: here.
Result<Child> StartChildWithFds(const std::vector<std::string>& argv,
                                const std::vector<std::string>& env, const std::array<int, 3>& fds,
                                const std::string& work_dir = "");

// Waits for the end of a child whose pidfd is readable: waitpid's status.
int ReapChild(const Child& child);

struct CommandResult {
  int exit_code = -1;  // 128 + signal if it was killed
  std::string out;
  std::string err;
};

struct CommandLimits {
  std::chrono::milliseconds time{30'000};
  size_t bytes = 64 << 20;  // of each output
};

// Runs a command to its end, giving it `input`. DeadlineExceeded and ResourceExhausted (it is
// killed then) name it. Blocks. SIGPIPE must be ignored: the command may not read its input.
Result<CommandResult> RunCommand(const std::vector<std::string>& argv,
                                 const std::vector<std::string>& env, const std::string& input = "",
                                 const CommandLimits& limits = {});

// "NAME=value" of this process.
std::vector<std::string> CurrentEnvironment();

}  // namespace shoal::engine
