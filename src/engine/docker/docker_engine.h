// The engine of this machine's Docker daemon: a task is a container.
//
// Used by the embedded controller. Containers outlive the engine; a later engine finds them by
// their labels. Docker's restart policies are not used: restart_rules.h decides, as on every
// engine.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

// Plain value; `clock` outlives the engine.
struct DockerEngineOptions {
  const Clock* clock = RealClock::Get();
  RestartRules restart;
  std::string host;      // as DOCKER_HOST; empty: that variable, else the usual socket
  std::string program;   // path of shoal in tasks' arguments
  std::string launcher;  // static executable mounted in its place; empty: `FindLauncher`
  std::chrono::milliseconds remove_grace{10'000};
};

// Starts a few threads. Connects to the daemon only when a method needs it; that method fails if
// the daemon cannot be used.
std::unique_ptr<Engine> MakeDockerEngine(DockerEngineOptions options);

}  // namespace shoal::engine
