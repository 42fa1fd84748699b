// The state machine of one job. Inputs are the queue's decision, events of engine and coordinator,
// and the user's signals.
//
//     kWaiting ──admitted──▶ kStarting ──engine.Apply──▶ kRunning ──verdict──▶ kCleanup ──▶ kDone
//
// Everything runs on the loop's thread, except engine calls that may block (async_engine_calls.h).
// Nothing is polled: the queue waits for changes of the store, the first connection for a file.

#include "controller/run/job_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/log.h"
#include "controller/files/outputs.h"
#include "controller/recovery/reconcile.h"
#include "controller/run/admission.h"
#include "controller/run/async_engine_calls.h"
#include "controller/run/coordinator_link.h"
#include "controller/run/coordinator_status.h"
#include "controller/run/event_batcher.h"
#include "controller/run/log_delivery.h"
#include "controller/run/loop_task_group.h"
#include "controller/run/pending_reasons.h"
#include "controller/run/scale_requests.h"
#include "controller/run/task_applier.h"
#include "controller/store/process_identity.h"
#include "job/execution/job_dir.h"
#include "job/spec/json.h"

namespace shoal::controller {
namespace {

// Time for a coordinator to kill all tasks before the job ends without it.
constexpr Duration kKillTimeout = std::chrono::seconds(3);
// Interval at which a waiting job recovers jobs of dead controllers, which may hold the resources
// it waits for.
constexpr Duration kReconcileInterval = std::chrono::seconds(5);

class Run final : public JobRun {
 public:
  Run(const ControllerOptions& options, net::Loop* loop, std::string id, job::Job job,
      Observer observer)
      : options_(options),
        loop_(loop),
        id_(std::move(id)),
        dir_(options.home.job_dir(id_)),
        shared_(options.engine->SharesJobDirectory()),
        job_(std::move(job)),
        observer_(std::move(observer)),
        event_batcher_(options.store, options.clock, loop, id_),
        logs_(LogStore(dir_), observer_.on_log),
        coordinator_(LinkOptions(), LinkCallbacks()),
        applier_(ApplierOptions()),
        calls_(options.engine, options.home, options.clock, id_) {}

  ~Run() override {
    tasks_.CancelAll();
    engine_watch_.reset();
  }

  void Begin() {
    tasks_.PostAfter(Duration(0), [this] { Admit(); });
  }
  void Drain(const std::string& reason) override;
  void Kill(const std::string& reason) override;
  void Suspend(const std::string& reason) override;
  void Scale(const std::string& role, int replicas, const std::string& reason,
             std::function<void(const Status&)> done) override;

 private:
  enum class Phase : uint8_t { kWaiting, kStarting, kRunning, kCleanup, kDone };

  void Note(const std::string& text) {
    if (observer_.on_note) observer_.on_note(text);
  }
  void Record(const std::string& text) {  // reports and records the text
    Note(text);
    event_batcher_.AddNote(text);
  }
  void ReportState(JobState state, const std::string& why) {
    if (observer_.on_state) observer_.on_state(state, why);
  }

  void Admit();
  void WaitForStore(const std::string& why);
  void YieldJob();
  void ReconcileOthers();
  void StartTasks();
  Status MakeTasks();
  CoordinatorLinkOptions LinkOptions();
  CoordinatorLinkCallbacks LinkCallbacks();
  TaskApplier::Options ApplierOptions();
  void OnApplied(const Status& status, bool first);
  void ReapplyTasks(const std::string& role);
  void OnOutputsFetched(Status status);

  void OnEngine(const engine::TaskEvent& event);
  void OnStopped(bool stopped, const std::string& why);
  void CancelWhileStopped();
  void OnCoordinatorEnd(const engine::TaskEvent& event);
  void ReportWait(const std::string& why);
  void LeaveQueue();
  void WaitForRequeue();
  bool IsRequeued(const rendezvous::Verdict& verdict) const;
  // Verdict of a coordinator that is gone. Without a shared directory the verdict is written only
  // after the outputs have arrived.
  Result<rendezvous::Verdict> ReadEnd() const {
    return shared_ ? ReadVerdictOrJournal(dir_) : ReadVerdict(dir_);
  }
  void DropClient();
  void OnEvent(const rendezvous::JobEvent& event);
  void OnClosed(const Status& status);

  void Fail(const std::string& reason, Code code = Code::kInternal);
  void End(JobState state, const std::string& reason);
  void Finish(const Status& stored);

  const ControllerOptions options_;
  net::Loop* const loop_;
  LoopTaskGroup tasks_{loop_};
  const std::string id_;
  const std::filesystem::path dir_;
  const bool shared_;  // the job's processes see dir_
  job::Job job_;       // constant after admission
  const Observer observer_;
  EventBatcher event_batcher_;
  LogDelivery logs_;

  Phase phase_ = Phase::kWaiting;
  std::string queue_wait_reason_;
  std::string engine_wait_reason_;  // the engine's reason why the coordinator does not run
  PendingReasons pending_reasons_;  // reasons of the tasks
  std::string cancel_reason_;       // argument of Drain or Kill
  CoordinatorLink coordinator_;
  TaskApplier applier_;
  ScaleRequests scale_requests_{&tasks_};
  bool queued_ = true;    // with an engine that queues jobs: the coordinator does not run yet
  bool stopped_ = false;  // the engine reports the processes stopped by its owner
  bool awaiting_requeue_ =
      false;  // the coordinator has ended and will continue in another allocation
  std::unique_ptr<Store::Watcher> store_watch_;
  std::unique_ptr<engine::Engine::Watcher> engine_watch_;
  std::optional<rendezvous::Verdict> verdict_;  // set while outputs are being fetched
  AsyncEngineCalls calls_;                      // last member: its threads use the others
};

// ---- Waiting ------------------------------------------------------------------------------------

void Run::Admit() {
  if (phase_ != Phase::kWaiting) return;
  const bool queues = options_.engine->HasOwnQueue();
  const Result<engine::Capacity> capacity =
      queues ? Result<engine::Capacity>(engine::Capacity()) : options_.engine->GetCapacity();
  if (const Status& got = capacity.status(); !got.ok()) return Fail(got.message(), got.code());
  AdmissionAnswer answer;
  std::optional<JobRecord> mine;
  const auto decide = [&](const std::vector<JobRecord>& unfinished) -> std::vector<Event> {
    for (const JobRecord& job : unfinished) {
      if (job.id == id_ && job.state == JobState::kPending && job.owner == options_.self)
        mine = job;
    }
    if (!mine) return {};
    answer = queues ? AdmissionAnswer{AdmissionDecision::kYes, ""}
                    : DecideAdmission(
                          id_, unfinished, *capacity, *queue::MakeFifoAdmission(),
                          [&root = options_.home.root(), this](const ProcessIdentity& owner) {
                            return IsAlive(root, owner) && IsResponsive(root, owner, options_.self);
                          });
    const WallTime now = options_.clock->Wall();
    if (answer.answer == AdmissionDecision::kYes) return {StateEvent(now, JobState::kAdmitted, "")};
    if (answer.answer == AdmissionDecision::kWait && answer.why != queue_wait_reason_)
      return {StateEvent(now, JobState::kPending, answer.why)};
    return {};
  };
  const Status decided = options_.store->AppendDecided(id_, decide, Durability::kWritten);
  if (!decided.ok()) return Fail(decided.message());
  if (!mine) return YieldJob();
  if (answer.answer == AdmissionDecision::kNever) return Fail(answer.why);
  if (answer.answer == AdmissionDecision::kWait) return WaitForStore(answer.why);
  store_watch_.reset();
  event_batcher_.Reload();
  if (auto job = job::FromJson(mine->job); job.ok())
    job_ = std::move(*job);  // may have been scaled
  ReportState(JobState::kAdmitted, "");
  StartTasks();
}

// While it waited, the job was suspended, ended or taken over by another process.
void Run::YieldJob() {
  phase_ = Phase::kCleanup;
  store_watch_.reset();
  event_batcher_.Reload();
  tasks_.PostAfter(Duration(0), [this] { Finish(Status::Ok()); });
}

void Run::WaitForStore(const std::string& why) {
  if (why != queue_wait_reason_) ReportState(JobState::kPending, why);
  queue_wait_reason_ = why;
  if (store_watch_ != nullptr) return;
  // Records the working directory, for a resume of a job that was suspended before it started.
  const Status made = WriteJobDir(dir_, id_, job::ToJson(job_), options_.work_dir);
  if (!made.ok()) return Fail(made.message());
  auto watch = options_.store->Watch([this] { tasks_.Post([this] { Admit(); }); });
  if (!watch.ok()) return Fail(watch.status().message());
  store_watch_ = std::move(*watch);
  tasks_.Post([this] { Admit(); });  // what changed before the watch began
  tasks_.PostAfter(kReconcileInterval, [this] { ReconcileOthers(); });
}

void Run::ReconcileOthers() {
  if (phase_ != Phase::kWaiting) return;
  if (const auto repaired = Reconcile(MakeReconcileOptions(options_)); !repaired.ok())
    Log(LogLevel::kWarning, "{}", repaired.status().message());
  Admit();
  tasks_.PostAfter(kReconcileInterval, [this] { ReconcileOthers(); });
}

// ---- Starting -----------------------------------------------------------------------------------

void Run::StartTasks() {
  phase_ = Phase::kStarting;
  ReportState(JobState::kStarting, "");
  event_batcher_.AddState(JobState::kStarting, "");
  if (const Status made = MakeTasks(); !made.ok()) return Fail(made.message(), made.code());
}

Status Run::MakeTasks() {
  TRY(WriteJobDir(dir_, id_, job::ToJson(job_), options_.work_dir));
  TRY(logs_.Begin());
  TRY(coordinator_.Watch());
  engine_watch_ = options_.engine->Watch(id_, [this](const engine::TaskEvent& event) {
    tasks_.Post([this, event] { OnEngine(event); });
  });
  applier_.StartMembership();
  if (options_.engine->HasOwnQueue()) {
    phase_ = Phase::kRunning;
    applier_.ApplySoon();
    return Status::Ok();
  }
  TRY(applier_.ApplyFirst());
  phase_ = Phase::kRunning;
  if (!shared_) coordinator_.Connect();  // so that a wait for it has an end
  return Status::Ok();
}

TaskApplier::Options Run::ApplierOptions() {
  return {.engine = options_.engine,
          .id = id_,
          .paths = {dir_, options_.work_dir, options_.program, shared_, {}},
          .job = &job_,
          .calls = &calls_,
          .tasks = &tasks_,
          .is_running = [this] { return phase_ == Phase::kRunning; },
          .on_applied = std::bind_front(&Run::OnApplied, this)};
}

void Run::OnApplied(const Status& status, bool first) {
  if (!status.ok() && !applier_.applied()) return Fail(status.message(), status.code());
  if (!status.ok()) Note("tasks cannot be started: " + status.message());
  if (first && !shared_) coordinator_.Connect();  // so that a wait for it has an end
}

void Run::ReapplyTasks(const std::string& role) {
  if (const Status applied = applier_.Reapply(); !applied.ok())
    Note("the tasks of " + role + " cannot be started: " + applied.message());
}

CoordinatorLinkOptions Run::LinkOptions() {
  return {.loop = loop_,
          .tasks = &tasks_,
          .engine = options_.engine,
          .connect = options_.connect,
          .id = id_,
          .dir = dir_,
          .shared = shared_,
          .job = &job_,
          .logs = &logs_};
}

CoordinatorLinkCallbacks Run::LinkCallbacks() {
  return {.may_connect = [this] { return phase_ == Phase::kRunning; },
          .on_note = std::bind_front(&Run::Note, this),
          .on_event = std::bind_front(&Run::OnEvent, this),
          .on_closed = std::bind_front(&Run::OnClosed, this),
          .on_outputs = std::bind_front(&Run::OnOutputsFetched, this)};
}

// The job has ended and its outputs have arrived, or cannot be fetched.
void Run::OnOutputsFetched(Status status) {
  if (!verdict_ || phase_ != Phase::kRunning) return;
  const bool saved = verdict_->state == JobState::kCancelled &&
                     rendezvous::EndedWell(*verdict_, job_.success.roles);
  if (status.ok() && (saved || verdict_->state == JobState::kSucceeded))
    status = PlaceOutputs(dir_, job_.outputs);
  if (!status.ok()) Record("outputs may be missing: " + status.message());
  if (!job_.outputs.empty()) FailOnLostOutputs(status, &*verdict_);
  if (const Status written = WriteVerdict(dir_, *verdict_); !written.ok())
    Note("the verdict could not be written: " + written.message());
  End(verdict_->state, verdict_->reason);
}

// ---- What the engine says -----------------------------------------------------------------------

void Run::OnEngine(const engine::TaskEvent& event) {
  using engine::TaskPhase;
  if (phase_ != Phase::kRunning) return;
  const bool gone = event.phase == TaskPhase::kEnded || event.phase == TaskPhase::kLost;
  if (event.stopped) return OnStopped(*event.stopped, event.end.reason);
  if (event.role == kCoordinatorRole) {
    coordinator_.ApplyEngineEvent(event);
    if (event.phase == TaskPhase::kRefused) {
      return Fail((coordinator_.connected_once() ? "" : "its coordinator could not be started: ") +
                  event.end.reason);
    }
    if (gone) OnCoordinatorEnd(event);
    if (event.phase == TaskPhase::kStarting && !event.end.reason.empty())
      ReportWait(event.end.reason);
    if (event.phase == TaskPhase::kRunning)
      options_.engine->HasOwnQueue() ? LeaveQueue() : coordinator_.ConnectAfterDelay();
    return;
  }
  if (const std::string wait = pending_reasons_.ApplyEvent(event); !wait.empty()) Record(wait);
  if (event.phase == TaskPhase::kRefused) {
    coordinator_.Send([event](rendezvous::CoordinatorClient* client) {
      client->ReportRefused(event.role, event.index, event.end.reason);
    });
    return;
  }
  if (applier_.ApplyEvent(event)) ReapplyTasks(event.role);
  if (gone &&
      (event.phase == TaskPhase::kLost || event.end.signal != 0 || event.end.exit_code != 0)) {
    coordinator_.Send([event](rendezvous::CoordinatorClient* client) {
      client->ReportLost(event.role, event.index, event.incarnation, event.end.reason);
    });
  }
}

// The engine has stopped or continued the job's processes: a state, not a loss.
void Run::OnStopped(bool stopped, const std::string& why) {
  stopped_ = stopped;
  Record(why);
  event_batcher_.SetReason(stopped ? why : "");
  if (stopped && !cancel_reason_.empty()) return CancelWhileStopped();
  coordinator_.Send(
      [stopped, why](rendezvous::CoordinatorClient* client) { client->Hold(stopped, why); });
}

// Stopped processes, possibly including the coordinator, do not react: they get time, then the job
// ends.
void Run::CancelWhileStopped() {
  tasks_.PostAfter(2 * job_.limits.stop_grace, [this] {
    if (stopped_) End(JobState::kCancelled, cancel_reason_);
  });
}

// The job waits in the engine's queue.
void Run::ReportWait(const std::string& why) {
  queued_ = true;
  engine_wait_reason_ = why;
  Note(why);
  event_batcher_.SetReason(why);
}

void Run::LeaveQueue() {
  if (std::exchange(queued_, false)) event_batcher_.SetReason("");
  engine_wait_reason_.clear();
  if (std::exchange(awaiting_requeue_, false)) coordinator_.Disconnect();  // from the last one
  coordinator_.Connect();
}

// The tasks have saved and end; the engine restarts them in another allocation with a new
// coordinator.
void Run::WaitForRequeue() {
  if (std::exchange(awaiting_requeue_, true)) return;
  Record(rendezvous::kContinuesInNextAllocation);
  coordinator_.AckVerdict();
}

bool Run::IsRequeued(const rendezvous::Verdict& verdict) const {
  return options_.engine->HasOwnQueue() && cancel_reason_.empty() &&
         rendezvous::ContinuationOf(verdict) == rendezvous::Continuation::kNextAllocation;
}

void Run::OnCoordinatorEnd(const engine::TaskEvent& event) {
  if (awaiting_requeue_) return;
  // It may have written its verdict and died before it sent it.
  if (const Result<rendezvous::Verdict> verdict = ReadEnd(); verdict.ok()) {
    if (IsRequeued(*verdict)) return WaitForRequeue();
    event_batcher_.AddVerdict(*verdict);
    return End(verdict->state, verdict->reason);
  }
  const int deaths = coordinator_.CountDeath();
  const std::string how = DescribeCoordinatorEnd(event.end);
  if (deaths >= options_.coordinator_attempts) {
    return Fail(fmt::format("its coordinator ended {} times without coming up; the last one {}{}",
                            deaths, how, calls_.LastLine(kCoordinatorRole, 0)));
  }
  Record("the coordinator " + how + "; it is being started again");
}

// ---- What the coordinator says ------------------------------------------------------------------

void Run::OnEvent(const rendezvous::JobEvent& event) {
  using Type = rendezvous::JobEvent::Type;
  if (phase_ != Phase::kRunning) return;
  if (event.type == Type::kVerdict && IsRequeued(event.verdict)) return WaitForRequeue();
  event_batcher_.AddEvent(event);
  scale_requests_.ApplyEvent(event);
  if (applier_.ApplyEvent(event)) ReapplyTasks(event.role);
  if (event.type == Type::kJob && event.job_state != JobState::kStarting)
    ReportState(event.job_state, event.text);
  if (observer_.on_event) observer_.on_event(event);
  if (event.type != Type::kVerdict || verdict_) return;
  if (shared_) return End(event.verdict.state, event.verdict.reason);
  verdict_ = event.verdict;
  coordinator_.FinishOutputs();
}

void Run::OnClosed(const Status& status) {
  if (phase_ != Phase::kRunning) return;
  if (awaiting_requeue_ || (shared_ && coordinator_.starting())) return DropClient();
  if (verdict_) return;  // it is known, and the line that fetches outputs says what they are
  if (const Result<rendezvous::Verdict> verdict = ReadEnd(); verdict.ok()) {
    event_batcher_.AddVerdict(*verdict);
    return End(verdict->state, verdict->reason);
  }
  if (!shared_ && !engine_wait_reason_.empty()) {
    return Fail(fmt::format("its coordinator did not run within {}: {}",
                            FormatDuration(job_.limits.gather), engine_wait_reason_));
  }
  Fail(fmt::format("its coordinator cannot be reached: {}{}",
                   status.ok() ? "it closed the connection without a verdict" : status.message(),
                   calls_.LastLine(kCoordinatorRole, 0)));
}

// Drops the client until the next coordinator runs. Deferred, since the client is executing this
// callback.
void Run::DropClient() {
  tasks_.PostAfter(Duration(0), [this] {
    coordinator_.Disconnect();
    awaiting_requeue_ = false;
    if (!cancel_reason_.empty()) Drain(cancel_reason_);  // the next one has not heard it
  });
}

// ---- What the user says -------------------------------------------------------------------------

void Run::Drain(const std::string& reason) {
  if (phase_ >= Phase::kCleanup) return;
  if (cancel_reason_.empty()) cancel_reason_ = reason;
  // A resumed job that has not started yet returns to suspended: nothing is lost.
  const bool resumed = std::filesystem::exists(job::JobDir(dir_).resumes());
  if (phase_ == Phase::kWaiting || (coordinator_.starting() && !coordinator_.connected_once()))
    return End(resumed ? JobState::kSuspended : JobState::kCancelled, reason);
  if (queued_ && options_.engine->HasOwnQueue()) return End(JobState::kCancelled, reason);
  coordinator_.Send([reason](rendezvous::CoordinatorClient* client) { client->Drain(reason); });
  if (stopped_) CancelWhileStopped();
}

void Run::Kill(const std::string& reason) {
  // Resources that cannot be removed now are recorded; the next command tries again.
  if (phase_ == Phase::kCleanup) {
    event_batcher_.GiveUp();
    return calls_.Interrupt();
  }
  if (phase_ == Phase::kDone) return;
  if (cancel_reason_.empty()) cancel_reason_ = reason;
  if (phase_ == Phase::kWaiting || !coordinator_.Kill(reason))
    return End(JobState::kCancelled, reason);
  tasks_.PostAfter(kKillTimeout, [this, reason] { End(JobState::kCancelled, reason); });
}

void Run::Suspend(const std::string& reason) {
  if (phase_ >= Phase::kCleanup) return;
  const bool queued = queued_ && options_.engine->HasOwnQueue();
  if (phase_ == Phase::kWaiting || queued ||
      (coordinator_.starting() && !coordinator_.connected_once()))
    return End(JobState::kSuspended, reason);
  coordinator_.Send([reason](rendezvous::CoordinatorClient* client) { client->Suspend(reason); });
}

void Run::Scale(const std::string& role, int replicas, const std::string& reason,
                std::function<void(const Status&)> done) {
  if (phase_ >= Phase::kCleanup) return done(FailedPrecondition("job " + id_ + " has ended"));
  if (phase_ == Phase::kWaiting)
    return done(Controller(options_).ScaleWaiting(id_, role, replicas));
  scale_requests_.Add(role, replicas, std::move(done));
  coordinator_.Send([role, replicas, reason](rendezvous::CoordinatorClient* client) {
    client->Scale(role, replicas, reason);
  });
}

// ---- The end ------------------------------------------------------------------------------------

void Run::Fail(const std::string& reason, Code code) {
  if (verdict_) return OnOutputsFetched(Unavailable(reason));
  if (!cancel_reason_.empty()) return End(JobState::kCancelled, cancel_reason_);
  if (observer_.on_failed) observer_.on_failed(code);
  End(JobState::kFailed, reason);
}

void Run::End(JobState state, const std::string& reason) {
  if (phase_ >= Phase::kCleanup) return;
  phase_ = Phase::kCleanup;
  store_watch_.reset();
  scale_requests_.EndAll(FailedPrecondition("job " + id_ + " has ended"));
  calls_.BeginCleanup();
  if (state == JobState::kSucceeded && shared_) {  // else OnOutputsFetched has looked
    for (const std::string& text : MissingOutputs(job_.outputs)) Record(text);
  }
  const std::string why = state == JobState::kFailed ? pending_reasons_.Explain(reason) : reason;
  event_batcher_.End(state, why);
  coordinator_.AckVerdict();
  calls_.CleanUp(state, [this](const Status& stopped) {
    tasks_.Post([this, stopped] {
      if (!stopped.ok() && applier_.applied())
        Note("resources of the job may remain: " + stopped.message());
      else if (!stopped.ok())  // the job's own reason says why its engine could make nothing
        Log(LogLevel::kInfo, "job {}: {}", id_, stopped.message());
      event_batcher_.FlushRest(std::bind_front(&Run::Finish, this));
    });
  });
}

void Run::Finish(const Status& stored) {
  // The verdict is also in the job's directory, from which the next command records it.
  if (!stored.ok()) Note("the end of the job could not be stored: " + stored.message());
  phase_ = Phase::kDone;
  engine_watch_.reset();
  coordinator_.Close();
  if (const Status shown = logs_.DeliverRest(); !shown.ok())
    Note("not all output of the tasks was shown: " + shown.message());
  if (observer_.on_end) observer_.on_end(event_batcher_.record());
}

}  // namespace

std::unique_ptr<JobRun> StartJobRun(const ControllerOptions& options, net::Loop* loop,
                                    const std::string& id, job::Job job, Observer observer) {
  auto run = std::make_unique<Run>(options, loop, id, std::move(job), std::move(observer));
  run->Begin();
  return run;
}

}  // namespace shoal::controller
