// Engine calls that may block on a daemon or cluster for minutes, each on a thread of its own so
// that the loop continues to serve signals. Used by job_run.cc.
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

// Must be used from one thread. `done` is called on the thread of the call. `engine` must outlive
// it.
class AsyncEngineCalls {
 public:
  using Done = std::function<void(const Status&)>;

  AsyncEngineCalls(engine::Engine* engine, StateHome home, const Clock* clock, std::string job)
      : engine_(engine), home_(std::move(home)), clock_(clock), job_(std::move(job)) {}
  // Interrupts an Apply and waits for all calls in progress.
  ~AsyncEngineCalls();
  AsyncEngineCalls(const AsyncEngineCalls&) = delete;
  AsyncEngineCalls& operator=(const AsyncEngineCalls&) = delete;

  // Must not be called before `done` of the previous Apply.
  void Apply(engine::DesiredJob desired, Done done);
  // Acquires the cleanup lock (cleanup_lock.h), before the job's end is recorded; held until
  // CleanUp is done.
  void BeginCleanup() { cleanup_lock_ = AcquireCleanupLock(home_.job_dir(job_)); }
  // The last call: interrupts an Apply, stops the job and removes its scratch files. Resources that
  // the engine could not remove are recorded (leftovers.h) and returned to `done` as an error.
  void CleanUp(JobState state, Done done);
  // "; it said: …" with the last output line of a task from the engine, or an empty text. Blocks on
  // the engine.
  std::string LastLine(const std::string& role, int index);
  // Makes CleanUp finish soon, even if the engine does not answer.
  void Interrupt() { engine_->Interrupt(job_); }

 private:
  engine::Engine* const engine_;
  const StateHome home_;
  const Clock* const clock_;
  const std::string job_;
  UniqueFd cleanup_lock_;  // owned by the calling thread, later by CleanUp's
  std::future<void> applying_;
  std::future<void> cleanup_;
};

}  // namespace shoal::controller
