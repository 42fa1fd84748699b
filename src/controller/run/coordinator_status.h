// What the engine has said of a job's coordinator, for job_run.cc: while the engine still starts it
// (it pulls an image, say), nobody can be reached, however long that takes.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "job/spec/job.h"

namespace shoal::controller {

// Not thread-safe.
class CoordinatorStatus {
 public:
  // An event of the coordinator.
  void ApplyEvent(const engine::TaskEvent& event);
  // The engine has begun to start it, and has not said that it runs.
  bool starting() const { return starting_; }
  // For a client that it does not answer: whether it runs by the engine's word. `note` is told the
  // first time that it does.
  bool IsRunning(const std::function<void(const std::string&)>& note);

 private:
  bool starting_ = false;
  bool running_ = false;
  bool noted_ = false;
};

// How it ended, behind "the coordinator": the engine's words, or those of its status.
std::string DescribeCoordinatorEnd(const engine::TaskEnd& end);

// How long one that is not reached is waited for while the engine does not say that it starts it.
Duration CoordinatorTimeout(const job::Limits& limits, const engine::Engine& engine);

}  // namespace shoal::controller
