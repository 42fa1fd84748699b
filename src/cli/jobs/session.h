// State shared by the commands about jobs: the state home, its store (after the recovery of
// orphaned jobs) and the engines.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "controller/files/state_home.h"
#include "controller/recovery/reconcile.h"
#include "controller/run/controller.h"
#include "controller/store/process_identity.h"
#include "controller/store/store.h"
#include "engine/engine.h"
#include "rendezvous/client/coordinator_client.h"

namespace shoal::cli {

class Session {
 public:
  // Opens the store, recovers jobs of dead controllers and prunes expired records. Errors are those
  // of the store.
  static Result<std::unique_ptr<Session>> Open(const Context& context);

  controller::Store& store() { return *store_; }
  const controller::StateHome& home() const { return home_; }
  const controller::ProcessIdentity& self() const { return self_; }
  // Acquires the lock that shows other processes that this one lives (controller::LivenessLock),
  // held as long as the session exists. Must precede the ownership of a job; repeated calls do
  // nothing.
  Status HoldLivenessLock();
  // True if the owner of a job lives, on any machine.
  bool IsAlive(const controller::ProcessIdentity& owner) const {
    return controller::IsAlive(home_.root(), owner);
  }
  // The engine with this name (cli/jobs/engines.h), created at the first call and owned by the
  // session.
  Result<engine::Engine*> engine(const std::string& name);
  // Options for a client of the job's coordinator that is not its controller: without logs.
  Result<rendezvous::CoordinatorClientOptions> ObserverClientOptions(
      const controller::JobRecord& job);
  // A controller without an engine.
  controller::Controller controller();
  // True if the job runs on without a controller.
  bool unattended(const std::string& id) const;
  // Repeats the recovery.
  Status Reconcile();
  // Recovers a job whose owner lives but does not act.
  Status ReconcileFrozen(const std::string& id);

 private:
  controller::ReconcileOptions Repair();
  explicit Session(controller::StateHome home) : home_(std::move(home)) {}

  controller::StateHome home_;
  controller::ProcessIdentity self_;
  std::optional<controller::LivenessLock> liveness_lock_;
  std::unique_ptr<controller::Store> store_;
  std::map<std::string, std::unique_ptr<engine::Engine>> engines_;
  std::vector<controller::ReconciledJob> repaired_;
};

}  // namespace shoal::cli
