// The far end of a command in a task (remote_exec.h): `shoal enter` runs it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "engine/engine.h"

namespace shoal::engine {

struct ExecServerStreams {
  int in = 0;  // frames; its end means that the caller is gone
  int out = 1;
  int err = 2;  // frames
  // How long a command has, that was hung up because its caller is gone, before it is killed.
  std::chrono::milliseconds grace{5'000};
};

// Starts the command by `start`, whose ExecSpec's fds are the command's, and carries what goes in
// and comes out until it has ended; tells the caller how. Returns that too. Blocks; signals that
// end a process with a broken pipe must be ignored.
Result<ExecEnd> ServeExec(
    ExecSpec spec, const ExecServerStreams& ends,
    const std::function<Result<std::unique_ptr<Execution>>(const ExecSpec&)>& start);

}  // namespace shoal::engine
