// The calls of a job's run to its engine that may wait for a daemon or cluster for minutes, each on
// a thread of its own, so that signals are served meanwhile. Used by job_run.cc.
#pragma once

#include <functional>
#include <future>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "controller/files/cleanup_lock.h"
#include "controller/files/state_home.h"
#include "engine/engine.h"

namespace shoal::controller {

// Belongs to one thread; `done` is called on the call's own.
class AsyncEngineCalls {
 public:
  using Done = std::function<void(const Status&)>;

  AsyncEngineCalls(engine::Engine* engine, StateHome home, const Clock* clock, std::string job)
      : engine_(engine), home_(std::move(home)), clock_(clock), job_(std::move(job)) {}
  // Interrupts an Apply, and waits for what is under way.
  ~AsyncEngineCalls();
  AsyncEngineCalls(const AsyncEngineCalls&) = delete;
  AsyncEngineCalls& operator=(const AsyncEngineCalls&) = delete;

  // Not before the `done` of the one before.
  void Apply(engine::DesiredJob desired, Done done);
  // Before the job's end is recorded: from then on IsCleanupRunning (clearing.h), until CleanUp is
  // done.
  void BeginCleanup() { cleanup_lock_ = AcquireCleanupLock(home_.job_dir(job_)); }
  // The last call: interrupts an Apply, stops the job and removes its scratch files. What the
  // engine could not remove is recorded (leftovers.h), and is the error that `done` gets.
  void CleanUp(JobState state, Done done);
  // "; it said: …" with the last line that a task printed, as the engine has it; empty without one.
  // Waits for the engine.
  std::string LastLine(const std::string& role, int index);
  // CleanUp ends soon, whatever does not answer.
  void Interrupt() { engine_->Interrupt(job_); }

 private:
  engine::Engine* const engine_;
  const StateHome home_;
  const Clock* const clock_;
  const std::string job_;
  UniqueFd cleanup_lock_;  // of the calling thread's, then of CleanUp's
  std::future<void> applying_;
  std::future<void> cleanup_;
};

}  // namespace shoal::controller
