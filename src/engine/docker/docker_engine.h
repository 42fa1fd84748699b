// The engine of one machine's Docker daemon: a task is a container, spoken about over the daemon's
// unix socket.
//
// Used by the embedded controller. It survives its own death: containers go on, and another one
// finds them by their labels. Docker's own restart policies are not used: whether a task is made
// again is said by restart_rules.h, as on every engine.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

struct DockerEngineOptions {
  const Clock* clock = RealClock::Get();
  RestartRules restart;
  std::string host;      // as DOCKER_HOST; empty: that variable, else the usual socket
  std::string program;   // shoal, as tasks name it
  std::string launcher;  // the static executable that takes its place; empty: `FindLauncher`
  std::chrono::milliseconds remove_grace{10'000};
};

// Starts a few threads. The daemon is not asked before a call needs it; that call then fails with
// one sentence if there is none that can be used.
std::unique_ptr<Engine> MakeDockerEngine(DockerEngineOptions options);

}  // namespace shoal::engine
