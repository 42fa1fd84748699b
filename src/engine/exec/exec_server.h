// The server side of a remote command (remote_exec.h), run by `shoal enter` beside the task's
// program.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "engine/engine.h"

namespace shoal::engine {

// Descriptors of the connection to the caller. Not owned.
struct ExecServerStreams {
  int in = 0;  // frames; end of file means that the caller is gone
  int out = 1;
  int err = 2;  // frames
  // Time between SIGHUP, sent because the caller is gone, and SIGKILL.
  std::chrono::milliseconds grace{5'000};
};

// Starts the command by `start`, whose ExecSpec's fds become the command's, copies input and output
// until the command has ended, and reports its end to the caller. Returns the end as well. Blocks.
// SIGPIPE must be ignored.
Result<ExecEnd> ServeExec(
    ExecSpec spec, const ExecServerStreams& ends,
    const std::function<Result<std::unique_ptr<Execution>>(const ExecSpec&)>& start);

}  // namespace shoal::engine
