#include "cli/jobs/session.h"

#include "base/log.h"
#include "cli/jobs/engines.h"
#include "controller/recovery/leftovers.h"
#include "controller/recovery/prune.h"
#include "controller/store/sqlite_store.h"

namespace shoal::cli {

Result<std::unique_ptr<Session>> Session::Open(const Context&) {
  TRY_ASSIGN(std::filesystem::path root, controller::FindStateHome());
  std::unique_ptr<Session> session(new Session(controller::StateHome(std::move(root))));
  TRY_ASSIGN(session->self_, controller::CurrentProcess());
  TRY_ASSIGN(session->store_, controller::OpenSqliteStore(session->home_.database()));
  TRY(session->Reconcile());
  const WallTime now = RealClock::Get()->Wall();
  if (const auto pruned = controller::Prune(session->store_.get(), session->home_, now);
      !pruned.ok())
    Log(LogLevel::kInfo, "{}", pruned.status().message());
  return session;
}

Status Session::HoldLivenessLock() {
  if (liveness_lock_) return Status::Ok();
  TRY_ASSIGN(auto mark, controller::LivenessLock::Make(home_.root(), self_));
  liveness_lock_.emplace(std::move(mark));
  return Status::Ok();
}

Result<engine::Engine*> Session::engine(const std::string& name) {
  std::unique_ptr<engine::Engine>& engine = engines_[name];
  if (engine == nullptr) {
    TRY_ASSIGN(engine, MakeEngine(name, [home = home_](const std::string& id) {
                 return home.job_dir(id).string();
               }));
  }
  return engine.get();
}

Result<rendezvous::CoordinatorClientOptions> Session::ObserverClientOptions(
    const controller::JobRecord& job) {
  rendezvous::CoordinatorClientOptions options;
  options.job_dir = home_.job_dir(job.id).string();
  options.logs = false;
  options.controller = false;
  TRY_ASSIGN(engine::Engine* const where, engine(job.engine));
  if (where->SharesJobDirectory()) return options;
  TRY(where->Adopt(job.id, options.job_dir).status());
  options.find = [where, id = job.id]() -> Result<rendezvous::CoordinatorAddress> {
    TRY_ASSIGN(const engine::Endpoint endpoint, where->Dial(id));
    return rendezvous::CoordinatorAddress{endpoint.host, endpoint.port};
  };
  return options;
}

controller::Controller Session::controller() {
  controller::ControllerOptions options;
  options.store = store_.get();
  options.home = home_;
  options.self = self_;
  return controller::Controller(std::move(options));
}

bool Session::unattended(const std::string& id) const {
  for (const controller::ReconciledJob& job : repaired_) {
    if (job.id == id && job.unattended) return true;
  }
  return false;
}

controller::ReconcileOptions Session::Repair() {
  controller::ReconcileOptions options;
  options.store = store_.get();
  options.home = home_;
  options.self = self_;
  options.hold_liveness_lock = [this] { return HoldLivenessLock(); };
  options.engine = [this](const std::string& name) { return engine(name); };
  return options;
}

Status Session::Reconcile() {
  const controller::ReconcileOptions options = Repair();
  TRY_ASSIGN(repaired_, controller::Reconcile(options));
  constexpr std::chrono::milliseconds kPatience{2000};  // bounds the delay of the user's command
  for (const controller::Leftover& gone : controller::RemoveLeftovers(options, kPatience))
    LogInfo("{}: removed its remaining resources on {}", gone.job, gone.engine);
  return Status::Ok();
}

Status Session::ReconcileFrozen(const std::string& id) {
  controller::ReconcileOptions options = Repair();
  options.frozen = id;
  return controller::Reconcile(options).status();
}

}  // namespace shoal::cli
