#include "controller/jobs/session.h"

#include <climits>
#include <filesystem>

#include "base/log.h"
#include "controller/jobs/job_json.h"
#include "controller/recovery/leftovers.h"
#include "controller/recovery/prune.h"
#include "controller/store/sqlite_store.h"
#include "job/execution/job_dir.h"

namespace shoal::controller {

Session::Session(StateHome home, std::vector<EngineInstance> instances)
    : home_(std::move(home)),
      engines_(instances.empty() ? DefaultEngineInstances() : std::move(instances),
               [where = home_](const std::string& id) { return where.job_dir(id).string(); }) {}

Result<std::unique_ptr<Session>> Session::Open(std::vector<EngineInstance> instances) {
  TRY_ASSIGN(std::filesystem::path root, FindStateHome());
  std::unique_ptr<Session> session(new Session(StateHome(std::move(root)), std::move(instances)));
  TRY_ASSIGN(session->self_, CurrentProcess());
  TRY_ASSIGN(session->store_, OpenSqliteStore(session->home_.database()));
  session->secrets_ =
      std::make_unique<SecretVault>(&session->store_->records(), RealClock::Get(),
                                    SealingKeySource{session->home_.secrets_key(), ""});
  TRY(session->Reconcile());
  const WallTime now = RealClock::Get()->Wall();
  if (const auto pruned = Prune(session->store_.get(), session->home_, now); !pruned.ok())
    Log(LogLevel::kInfo, "{}", pruned.status().message());
  return session;
}

Status Session::HoldLivenessLock() {
  if (liveness_lock_) return Status::Ok();
  TRY_ASSIGN(auto mark, LivenessLock::Make(home_.root(), self_));
  liveness_lock_.emplace(std::move(mark));
  return Status::Ok();
}

Result<rendezvous::CoordinatorClientOptions> Session::ObserverClientOptions(const JobRecord& job) {
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

Controller Session::MakeController() {
  ControllerOptions options;
  options.store = store_.get();
  options.home = home_;
  options.self = self_;
  return Controller(std::move(options));
}

bool Session::unattended(const std::string& id) const {
  for (const ReconciledJob& job : repaired_) {
    if (job.id == id && job.unattended) return true;
  }
  return false;
}

ReconcileOptions Session::Repair() {
  ReconcileOptions options;
  options.store = store_.get();
  options.home = home_;
  options.self = self_;
  options.hold_liveness_lock = [this] { return HoldLivenessLock(); };
  options.engine = [this](const std::string& name) { return engine(name); };
  return options;
}

Duration Session::TimeSuspended(const std::string& id) {
  std::error_code error;
  if (!std::filesystem::exists(job::JobDir(home_.job_dir(id)).resumes(), error)) return Duration(0);
  const auto events = store_->ReadEvents(id, 0, INT_MAX);
  return events.ok() ? controller::TimeSuspended(*events) : Duration(0);
}

Status Session::Reconcile(const std::string& given_up) {
  ReconcileOptions options = Repair();
  options.given_up = given_up;
  TRY_ASSIGN(repaired_, controller::Reconcile(options));
  constexpr std::chrono::milliseconds kPatience{2000};  // bounds the delay of the user's command
  for (const Leftover& gone : RemoveLeftovers(options, kPatience))
    Log(LogLevel::kInfo, "{}: removed its remaining resources on {}", gone.job, gone.engine);
  return Status::Ok();
}

Status Session::ReconcileFrozen(const std::string& id) {
  ReconcileOptions options = Repair();
  options.frozen = id;
  return controller::Reconcile(options).status();
}

}  // namespace shoal::controller
