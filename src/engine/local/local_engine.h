// The engine of one machine: a task is a process of its own session, tracked by pidfd.
//
// Used by the embedded controller. Tasks outlive the engine; a later engine finds them by the
// records in the job's directory and by the job's id in the processes' environments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

// Plain value; `clock` outlives the engine.
struct LocalEngineOptions {
  const Clock* clock = RealClock::Get();
  RestartRules restart;
  // Simulates hosts without a shared file system (isolated_dirs.h), for tests. The engine's name is
  // then "local-apart".
  bool no_shared_filesystem = false;
  // "NAME=value": base of every task's environment. Empty: PATH, HOME, LANG and the like of this
  // process.
  std::vector<std::string> environment;
  // Time between SIGTERM and SIGKILL of a task that Apply no longer lists.
  std::chrono::milliseconds remove_grace{10'000};
};

// Starts one thread. Unavailable if the kernel has no pidfd (before Linux 5.3) or no descriptors
// are left.
Result<std::unique_ptr<Engine>> MakeLocalEngine(LocalEngineOptions options = {});

}  // namespace shoal::engine
