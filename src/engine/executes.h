// Optional ability of an engine: commands in tasks and connections to tasks' ports, for `shoal
// exec` and `shoal forward`. The fake engine and every engine of a cluster implement it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace shoal::engine {

// A command to run beside a task's program.
struct ExecSpec {
  std::vector<std::string> argv;  // argv[0]: a path, or looked up in the program's PATH
  std::vector<std::string> env;   // "NAME=value", over the program's
  bool terminal = false;          // gets a pseudo-terminal, connected with fds[0] and fds[1]
  uint16_t rows = 24;             // of the terminal
  uint16_t columns = 80;
  // Standard input, output and error of the command. Owned by the caller, who keeps them open until
  // Wait returns.
  int fds[3] = {0, 1, 2};
};

// How a command ended.
struct ExecEnd {
  int exit_code = -1;  // valid if signal is 0
  int signal = 0;
};

// A command that was started in a task. Destroying the object kills the command; so does the end of
// the task's program.
class Execution {
 public:
  virtual ~Execution() = default;
  // Signal and Resize may be called while another thread is in Wait.
  virtual void Signal(int signal) = 0;
  virtual void Resize(uint16_t rows, uint16_t columns) = 0;
  // Copies input and output until the command has ended. May be called once. Returns an error if
  // the command could not be started.
  virtual Result<ExecEnd> Wait() = 0;
};

// Thread-safe. Both methods work for any job, also one of another controller, and need no Adopt.
// NotFound if the task has no running program; PermissionDenied; Unimplemented.
class Executes {
 public:
  virtual ~Executes() = default;

  // Starts a command in a task, with the program's directory, environment, limits and namespaces.
  // The calling thread must live as long as the command.
  virtual Result<std::unique_ptr<Execution>> Exec(const std::string& job_id,
                                                  const std::string& role, int index,
                                                  const ExecSpec& spec) = 0;

  // A socket connected to a TCP port on which the task's own processes listen. Unavailable if none
  // of them listens.
  virtual Result<UniqueFd> DialTask(const std::string& job_id, const std::string& role, int index,
                                    uint16_t port) = 0;
};

}  // namespace shoal::engine
