// A command in a task that is elsewhere: `shoal enter` is started beside the task's program, finds
// it by its environment and runs the command in its place (exec_far_end.h). What differs from
// engine to engine is how bytes get there. Used by docker_exec.cc and kube_exec.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine {

// What has come of a command's streams.
struct ExecOutput {
  std::string out;
  std::string err;
  bool closed = false;  // nothing more will
};

// The streams of a command that an engine has started. One thread uses it.
class ExecTransport {
 public:
  virtual ~ExecTransport() = default;
  // Readable when something has come.
  virtual int fd() const = 0;
  // Bytes to its input; waits for room.
  virtual Status Send(std::string_view bytes) = 0;
  // Appends what has come; does not wait.
  virtual Status Receive(ExecOutput* said) = 0;
  // How it ended as the engine sees it, once all is closed: asked only if the far end has not said
  // it itself. An error if it could not be started.
  virtual Result<ExecEnd> GetEnd() = 0;
};

// The words that start `enter`; `launcher`: its path where the task is. The engine gives it no
// terminal: it makes one itself, where the command is.
std::vector<std::string> EnterCommandArgv(const std::string& launcher, const std::string& job_id,
                                          const std::string& role, int index, const ExecSpec& spec);

// Signals, sizes and the end of the input go to the command in order with its input; when this is
// destroyed its connection ends, and the command is hung up.
std::unique_ptr<Execution> MakeRemoteExecution(std::unique_ptr<ExecTransport> transport,
                                               const ExecSpec& spec);

}  // namespace shoal::engine
