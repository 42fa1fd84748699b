// Recovery of jobs whose controller died: determines how they ended, records it, and stops
// remaining processes. Every `shoal` command that opens the store calls it first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "controller/files/state_home.h"
#include "controller/store/store.h"
#include "engine/engine.h"

namespace shoal::controller {

// True if the coordinator is among the tasks, starting or running.
bool CoordinatorLives(const std::vector<engine::TaskStatus>& tasks);

// Result for one job without a controller.
struct ReconciledJob {
  std::string id;
  // Its coordinator lives, so the job runs on without a controller, or it waits for its supervisor.
  bool unattended = false;
  JobState state = JobState::kFailed;
  std::string reason;
};

struct ReconcileOptions {
  Store* store = nullptr;
  StateHome home{std::filesystem::path()};
  const Clock* clock = RealClock::Get();
  ProcessIdentity self;
  // Id of a job whose owner lives but does not act; it is repaired as if the owner were dead.
  // Empty: none.
  std::string frozen;
  // Id of a job that does not wait for its supervisor any longer. Empty: none.
  std::string given_up;
  // Acquires the LivenessLock of `self`; called before the first job is claimed, so that no other
  // process takes the claimed job for an orphan. May be empty if the lock is held already.
  std::function<Status()> hold_liveness_lock;
  // Returns the engine with this name. Called only if a job needs recovery.
  std::function<Result<engine::Engine*>(const std::string& name)> engine;
};

// For each unfinished job whose owner is dead, on this or another machine: records its end from
// verdict.json; leaves it alone if its coordinator lives; otherwise records a failure and stops
// what remains. Jobs of living owners and suspended jobs are not touched.
//
// A job of a dead supervisor that has no verdict waits for the next supervisor
// (store/supervisor_mark.h) and is left alone.
//
// Processes in another PID namespace of this machine are never stopped, nor is their scratch
// removed (Engine::UsesPids): the lock on the coordinator's journal shows whether it lives.
// Concurrent calls are safe; one of the processes acts. Costs one query if there is nothing to do.
Result<std::vector<ReconciledJob>> Reconcile(const ReconcileOptions& options);

}  // namespace shoal::controller
