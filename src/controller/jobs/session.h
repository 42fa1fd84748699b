// What a process needs to work with the jobs of its state home: the store (after the recovery of
// orphaned jobs) and the engines. Used by embedded_jobs.h and by commands that reach into a job.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/engines/engine_registry.h"
#include "controller/files/state_home.h"
#include "controller/recovery/reconcile.h"
#include "controller/run/controller.h"
#include "controller/secrets/secret_vault.h"
#include "controller/store/process_identity.h"
#include "controller/store/store.h"
#include "engine/engine.h"
#include "rendezvous/client/coordinator_client.h"

namespace shoal::controller {

class Session {
 public:
  // Opens the store, recovers jobs of dead controllers and prunes expired records. Errors are those
  // of the store.
  // `instances`: the engines; empty: one of each kind.
  static Result<std::unique_ptr<Session>> Open(std::vector<EngineInstance> instances = {});

  Store& store() { return *store_; }
  // Of the state home, sealed with HOME/secrets.key.
  SecretVault& secrets() { return *secrets_; }
  const StateHome& home() const { return home_; }
  const ProcessIdentity& self() const { return self_; }
  // Acquires the lock that shows other processes that this one lives (LivenessLock),
  // held as long as the session exists. Must precede the ownership of a job; repeated calls do
  // nothing.
  Status HoldLivenessLock();
  // True if the owner of a job lives, on any machine.
  bool IsAlive(const ProcessIdentity& owner) const {
    return controller::IsAlive(home_.root(), owner);
  }
  EngineRegistry& engines() { return engines_; }
  // The engine with this name, created at the first call and owned by the session.
  Result<engine::Engine*> engine(const std::string& name) { return engines_.Find(name); }
  // Options for a client of the job's coordinator that is not its controller: without logs.
  Result<rendezvous::CoordinatorClientOptions> ObserverClientOptions(const JobRecord& job);
  // A controller without an engine.
  Controller MakeController();
  // True if the job runs on without a controller.
  bool unattended(const std::string& id) const;
  // Time that the job spent suspended or waiting to be restarted; 0 if it cannot be read.
  Duration TimeSuspended(const std::string& id);
  // Repeats the recovery. `given_up`: a job that does not wait for its supervisor any longer.
  Status Reconcile(const std::string& given_up = "");
  // Recovers a job whose owner lives but does not act.
  Status ReconcileFrozen(const std::string& id);

 private:
  Session(StateHome home, std::vector<EngineInstance> instances);
  ReconcileOptions Repair();

  StateHome home_;
  ProcessIdentity self_;
  std::optional<LivenessLock> liveness_lock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<SecretVault> secrets_;
  EngineRegistry engines_;
  std::vector<ReconciledJob> repaired_;
};

}  // namespace shoal::controller
