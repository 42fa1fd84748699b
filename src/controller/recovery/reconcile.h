// Jobs that were left behind by a controller that died: finds them, records how they ended, stops
// what is left. Every `shoal` command that opens the store calls it first.
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

// What became of one job that had lost its controller.
struct ReconciledJob {
  std::string id;
  bool unattended = false;  // its coordinator lives: it runs on without a controller
  JobState state = JobState::kFailed;
  std::string reason;
};

struct ReconcileOptions {
  Store* store = nullptr;
  StateHome home{std::filesystem::path()};
  const Clock* clock = RealClock::Get();
  ProcessIdentity self;
  // A job whose owner does not act, though it lives: it is repaired as if the owner were dead.
  std::string frozen;
  // Takes `self`'s mark (LivenessLock) before the first job is claimed, so that no other process
  // takes the claimed job for an orphan. May be empty if the mark is held already.
  std::function<Status()> hold_liveness_lock;
  // The engine of that name. Asked only if there is a job to look after.
  std::function<Result<engine::Engine*>(const std::string& name)> engine;
};

struct ControllerOptions;
// Of a controller: jobs of other engines than its own are left alone.
ReconcileOptions MakeReconcileOptions(const ControllerOptions& controller);

// For each job that has not ended and whose owner is dead, here or on another machine: verdict.json
// → its end is recorded; its coordinator alive → left alone; neither → failed, and what is left of
// it is stopped. Jobs of living owners, and suspended ones, are not touched. Processes of another
// PID namespace of this machine are never stopped, nor is their scratch removed (Engine::UsesPids):
// the lock on the coordinator's journal tells whether it lives. Of several processes that do this
// at once, one acts. Costs one query if there is nothing to do.
Result<std::vector<ReconciledJob>> Reconcile(const ReconcileOptions& options);

}  // namespace shoal::controller
