// Child processes with pipes: commands of other systems that run to their end, and long-running
// ones that an agent supervises.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/status.h"

namespace shoal::engine {

// A child process with its pipes. The destructor closes descriptors and does not kill the process.
struct Child {
  pid_t pid = 0;
  UniqueFd pidfd;  // readable once the process has ended
  UniqueFd in;     // write end of its standard input
  UniqueFd out;    // read ends of its standard output and error, non-blocking
  UniqueFd err;
};

// Starts a program, looked up in PATH, in a session of its own with exactly `env`. Errors name the
// program; NotFound if it does not exist.
Result<Child> StartChild(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                         const std::optional<UserIds>& user = std::nullopt);

// Starts a program with the caller's descriptors `fds` as its first three; in, out and err of the
// result are empty. `work_dir` empty: this process's. `user`: SpawnSpec::user.
Result<Child> StartChildWithFds(const std::vector<std::string>& argv,
                                const std::vector<std::string>& env, const std::array<int, 3>& fds,
                                const std::string& work_dir = "",
                                const std::optional<UserIds>& user = std::nullopt);

// Reaps a child whose pidfd is readable. Returns waitpid's status.
int ReapChild(const Child& child);

// Exit code and outputs of a command.
struct CommandResult {
  int exit_code = -1;  // 128 + signal if it was killed
  std::string out;
  std::string err;
};

// Limits of a command; exceeding one kills it.
struct CommandLimits {
  std::chrono::milliseconds time{30'000};
  size_t bytes = 64 << 20;  // of each output
};

// Runs a command to its end with `input` on its standard input. Blocks. If a limit is exceeded the
// command is killed: DeadlineExceeded or ResourceExhausted, which name it. SIGPIPE must be ignored:
// the command may close its input early.
Result<CommandResult> RunCommand(const std::vector<std::string>& argv,
                                 const std::vector<std::string>& env, const std::string& input = "",
                                 const CommandLimits& limits = {},
                                 const std::optional<UserIds>& user = std::nullopt);

// This process's environment as "NAME=value".
std::vector<std::string> CurrentEnvironment();

}  // namespace shoal::engine
