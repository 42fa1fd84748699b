// The engine's view of a job's coordinator, for job_run.cc. While the engine is starting it
// (pulling an image, for example), connection attempts are expected to fail for any length of time.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "job/spec/job.h"

namespace shoal::controller {

// Not thread-safe. Lives as long as the run.
class CoordinatorStatus {
 public:
  // Applies an engine event of the coordinator.
  void ApplyEvent(const engine::TaskEvent& event);
  // True after the engine began to start the coordinator, until it reports it running.
  bool starting() const { return starting_; }
  bool running() const { return running_; }
  // True if the engine reports the coordinator running; for a client that gets no answer. Calls
  // `note` on the first such report.
  bool IsRunning(const std::function<void(const std::string&)>& note);

 private:
  bool starting_ = false;
  bool running_ = false;
  bool noted_ = false;
};

// Continues "the coordinator …": the engine's reason, or a description of the exit status.
std::string DescribeCoordinatorEnd(const engine::TaskEnd& end);

// How long to wait for a coordinator that cannot be reached while the engine does not report that
// it is starting it.
Duration CoordinatorTimeout(const job::Limits& limits, const engine::Engine& engine);

}  // namespace shoal::controller
