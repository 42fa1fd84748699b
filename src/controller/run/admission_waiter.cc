#include "controller/run/admission_waiter.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "controller/admission/dependency_gate.h"
#include "controller/store/process_identity.h"
#include "controller/threads/blocking_call.h"

namespace shoal::controller {
namespace {

// Interval at which a waiting job recovers jobs of dead controllers, which may hold the resources
// it waits for.
constexpr Duration kReconcileInterval = std::chrono::seconds(5);

}  // namespace

AdmissionWaiter::AdmissionWaiter(const ControllerOptions* options, std::string id,
                                 LoopTaskGroup* tasks, AdmissionCallbacks callbacks)
    : options_(options), id_(std::move(id)), tasks_(tasks), callbacks_(std::move(callbacks)) {}

void AdmissionWaiter::Begin(const JobRecord& record, const job::Job& job) {
  if (state_ == State::kStopped) return;
  if (options_->admitter == nullptr) return Check();
  // The last call: the job does not wait with the admitter any longer. False after Stop.
  const auto leave = [this] { return std::exchange(state_, State::kStopped) != State::kStopped; };
  AdmissionCallbacks calls;
  calls.on_admitted = [this, leave](JobRecord admitted) {
    if (leave()) callbacks_.on_admitted(std::move(admitted));
  };
  calls.on_taken = [this, leave](std::optional<JobRecord> taken) {
    if (leave()) callbacks_.on_taken(std::move(taken));
  };
  calls.on_wait = callbacks_.on_wait;
  calls.on_failed = [this, leave](const Status& why) {
    if (leave()) callbacks_.on_failed(why);
  };
  begun_ = true;
  const auto wait = [admitter = options_->admitter](const JobRecord& now, const job::Job& whole,
                                                    AdmissionCallbacks passed) {
    admitter->Wait(now, whole, std::move(passed));
  };
  if (options_->gate == nullptr || !DependencyGate::Holds(record, job))
    return wait(record, job, std::move(calls));
  options_->gate->Wait(record, job, std::move(calls), wait);
}

void AdmissionWaiter::Check() {
  if (state_ == State::kStopped) return;
  if (options_->gate != nullptr) options_->gate->Reread(id_);
  if (options_->admitter != nullptr) return options_->admitter->Reread(id_);
  if (state_ != State::kIdle) {
    state_ = State::kAskingOld;
    return;
  }
  state_ = State::kAsking;
  Executor* const executor = options_->executors.engine;
  if (executor == nullptr) return OnAnswer(Ask(*options_, id_, wait_reason_));
  executor->Execute(
      [this, options = *options_, id = id_, why = wait_reason_, poster = tasks_->poster()] {
        const auto outcome = std::make_shared<Outcome>(Ask(options, id, why));
        poster.Post([this, outcome] { OnAnswer(std::move(*outcome)); });
      });
}

void AdmissionWaiter::Scale(const std::string& role, int replicas,
                            std::function<void(const Status&)> done) {
  const auto scale = [options = *options_, id = id_, role, replicas] {
    return Controller(options).ScaleWaiting(id, role, replicas);
  };
  CallBlocking(options_->executors.store, tasks_->poster(), scale,
               [this, done = std::move(done)](const Status& scaled) {
                 Check();
                 done(scaled);
               });
}

void AdmissionWaiter::Stop() {
  const bool waited = std::exchange(state_, State::kStopped) != State::kStopped;
  if (waited && begun_) {
    if (options_->gate != nullptr) options_->gate->Release(id_);
    options_->admitter->Release(id_);
  }
  watch_.reset();
}

AdmissionWaiter::Outcome AdmissionWaiter::Ask(const ControllerOptions& options,
                                              const std::string& id,
                                              const std::string& wait_reason) {
  Outcome outcome;
  const bool queues = options.engine->HasOwnQueue();
  engine::Capacity capacity;
  if (!queues) {
    Result<engine::Capacity> total = options.engine->GetCapacity();
    if (!total.ok()) return {total.status(), {}, false, {}};
    capacity = *total;
  }
  const auto policy = queue::MakeFifoAdmission();
  const auto acts = [&options](const ProcessIdentity& owner) {
    const std::filesystem::path& root = options.home.root();
    return IsAlive(root, owner) && IsResponsive(root, owner, options.self);
  };
  const auto decide = [&](const std::vector<JobRecord>& unfinished) -> std::vector<Event> {
    for (const JobRecord& job : unfinished) {
      outcome.mine |= job.id == id && job.state == JobState::kPending && job.owner == options.self;
    }
    if (!outcome.mine) return {};
    outcome.answer = queues ? AdmissionAnswer{AdmissionDecision::kYes, ""}
                            : DecideAdmission(id, unfinished, capacity, *policy, acts);
    const WallTime now = options.clock->Wall();
    if (outcome.answer.answer == AdmissionDecision::kYes)
      return {StateEvent(now, JobState::kAdmitted, "")};
    if (outcome.answer.answer == AdmissionDecision::kWait && outcome.answer.why != wait_reason)
      return {StateEvent(now, JobState::kPending, outcome.answer.why)};
    return {};
  };
  const Status decided = options.store->AppendDecided(id, decide, Durability::kWritten);
  if (!decided.ok()) outcome.asked = Status(Code::kInternal, decided.message());
  const bool changed = !outcome.mine || outcome.answer.answer == AdmissionDecision::kYes;
  if (outcome.asked.ok() && changed) {
    if (Result<JobRecord> stored = options.store->GetJob(id); stored.ok())
      outcome.record = std::move(*stored);
  }
  return outcome;
}

void AdmissionWaiter::OnAnswer(Outcome outcome) {
  if (state_ == State::kStopped) return;
  const bool again = std::exchange(state_, State::kIdle) == State::kAskingOld;
  const bool waits =
      outcome.asked.ok() && outcome.mine && outcome.answer.answer == AdmissionDecision::kWait;
  if (!waits) Stop();
  if (!outcome.asked.ok()) return callbacks_.on_failed(outcome.asked);
  if (!outcome.mine) return callbacks_.on_taken(std::move(outcome.record));
  if (outcome.answer.answer == AdmissionDecision::kYes) {
    if (!outcome.record)
      return callbacks_.on_failed(Status(Code::kInternal, "its record cannot be read"));
    return callbacks_.on_admitted(std::move(*outcome.record));
  }
  if (!waits) return callbacks_.on_failed(Status(Code::kInternal, outcome.answer.why));
  Wait(outcome.answer.why);
  if (again) Check();
}

void AdmissionWaiter::Wait(const std::string& why) {
  const auto wait = [&]() -> Status {
    if (why != wait_reason_ || watch_ == nullptr) TRY(callbacks_.on_wait(why, watch_ == nullptr));
    wait_reason_ = why;
    if (watch_ != nullptr) return Status::Ok();
    TRY_ASSIGN(watch_, options_->store->Watch([this, poster = tasks_->poster()] {
      poster.Post([this] { Check(); });
    }));
    tasks_->Post([this] { Check(); });  // what changed before the watch began
    if (options_->recovers_others)
      tasks_->PostAfter(kReconcileInterval, [this] { RecoverOthers(); });
    return Status::Ok();
  };
  if (const Status waiting = wait(); !waiting.ok()) {
    Stop();
    callbacks_.on_failed(waiting);
  }
}

void AdmissionWaiter::RecoverOthers() {
  if (state_ == State::kStopped) return;
  if (const auto repaired = Reconcile(MakeReconcileOptions(*options_)); !repaired.ok())
    LogWarning("{}", repaired.status().message());
  Check();
  tasks_->PostAfter(kReconcileInterval, [this] { RecoverOthers(); });
}

}  // namespace shoal::controller
