// The engine of one machine: a task is a process of its own session, tracked by pidfd.
//
// Used by the embedded controller. It survives its own death: what it started goes on, and another
// one finds it again by records in the job's directory and by the job's id in the processes'
// environments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

struct LocalEngineOptions {
  const Clock* clock = RealClock::Get();
  RestartRules restart;
  // Tasks share no directory, with us or with each other, as on other hosts (apart.h): for tests of
  // what holds on engines that are elsewhere. Its name is "local-apart" then.
  bool no_shared_filesystem = false;
  // "NAME=value": what every task's environment begins with. Empty: PATH, HOME, LANG and the like
  // of this process.
  std::vector<std::string> environment;
  // Between SIGTERM and SIGKILL of a task that Apply no longer names.
  std::chrono::milliseconds remove_grace{10'000};
};

// Starts one thread. Unavailable if the kernel has no pidfd (before Linux 5.3) or no descriptors
// are left.
Result<std::unique_ptr<Engine>> MakeLocalEngine(LocalEngineOptions options = {});

}  // namespace shoal::engine
