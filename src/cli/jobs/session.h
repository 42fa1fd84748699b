// What the commands about jobs share: the state home, its store (after jobs that were left behind
// have been looked after) and the engine.
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
  // Opens the store, repairs what a killed controller left and removes what was kept long enough.
  // NotFound and other codes as of the store.
  static Result<std::unique_ptr<Session>> Open(const Context& context);

  controller::Store& store() { return *store_; }
  const controller::StateHome& home() const { return home_; }
  const controller::ProcessIdentity& self() const { return self_; }
  // Takes the lock by which others see that this process lives (controller::LivenessLock), for as
  // long as the session exists. To be called before it owns a job; more calls do nothing.
  Status HoldLivenessLock();
  // Whether the owner of a job lives, wherever it runs.
  bool IsAlive(const controller::ProcessIdentity& owner) const {
    return controller::IsAlive(home_.root(), owner);
  }
  // The engine of that name (cli/jobs/engines.h), made at the first call.
  Result<engine::Engine*> engine(const std::string& name);
  // How its coordinator is asked by one who is not its controller: no logs.
  Result<rendezvous::CoordinatorClientOptions> ObserverClientOptions(
      const controller::JobRecord& job);
  // For what needs no engine.
  controller::Controller controller();
  // Ids of jobs that run on without a controller.
  bool unattended(const std::string& id) const;
  // Once more, after something may have ended.
  Status Reconcile();
  // Likewise, of a job whose owner lives but does not act.
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
