// Commands in tasks on other hosts or in containers: the engine starts `shoal enter` beside the
// task's program, which finds the program by its environment and runs the command there
// (exec_server.h). Engines differ only in the transport. Used by docker_exec.cc and kube_exec.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine {

// Data that arrived on a command's output streams.
struct ExecOutput {
  std::string out;
  std::string err;
  bool closed = false;  // no more data will arrive
};

// The streams of a command that an engine has started. Used by one thread.
class ExecTransport {
 public:
  virtual ~ExecTransport() = default;
  // A descriptor that is readable when data has arrived.
  virtual int fd() const = 0;
  // Writes to the command's input; blocks until there is room.
  virtual Status Send(std::string_view bytes) = 0;
  // Appends arrived data; does not block.
  virtual Status Receive(ExecOutput* said) = 0;
  // The end of the command as the engine sees it, once all streams are closed. Called only if
  // `shoal enter` did not report it. An error if the command could not be started.
  virtual Result<ExecEnd> GetEnd() = 0;
};

// The command line of `shoal enter`. `launcher`: path of shoal in the task's container. The engine
// must not allocate a terminal: `enter` allocates one beside the command.
std::vector<std::string> EnterCommandArgv(const std::string& launcher, const std::string& job_id,
                                          const std::string& role, int index, const ExecSpec& spec);

// Signals, window sizes and the end of input reach the command in order with its input. Destroying
// the result closes the connection, and the command receives SIGHUP.
std::unique_ptr<Execution> MakeRemoteExecution(std::unique_ptr<ExecTransport> transport,
                                               const ExecSpec& spec);

}  // namespace shoal::engine
