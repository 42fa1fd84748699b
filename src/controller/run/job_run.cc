// The state machine of one job. Inputs are the queue's decision, events of engine and coordinator,
// and the user's signals.
//
//     kWaiting ──admitted──▶ kRunning ──verdict──▶ kCleanup ──▶ kDone
//     kAttaching ──Engine::Adopt, Apply──▶ kRunning        (a job that another controller admitted)
//
// Everything runs on the loop's thread, except engine calls that may block (async_engine_calls.h)
// and, under a supervisor, commits. Nothing is polled: the queue waits for changes of the store,
// the first connection for a file.

#include "controller/run/job_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/log.h"
#include "controller/files/log_delivery.h"
#include "controller/files/outputs.h"
#include "controller/run/admission_waiter.h"
#include "controller/run/async_engine_calls.h"
#include "controller/run/coordinator_link.h"
#include "controller/run/coordinator_status.h"
#include "controller/run/event_batcher.h"
#include "controller/run/job_ending.h"
#include "controller/run/pending_reasons.h"
#include "controller/run/run_reporter.h"
#include "controller/run/scale_requests.h"
#include "controller/run/takeover.h"
#include "controller/run/task_applier.h"
#include "controller/secrets/job_secrets.h"
#include "controller/threads/blocking_call.h"
#include "job/execution/job_dir.h"
#include "job/spec/json.h"
#include "rendezvous/client/journal_events.h"

namespace shoal::controller {
namespace {

// Pause before a repetition of what cannot be done without the lead, or during a takeover.
constexpr Duration kAgain = std::chrono::milliseconds(100);
// Time for a coordinator to kill all tasks before the job ends without it.
constexpr Duration kKillTimeout = std::chrono::seconds(3);

// Verdict of a coordinator that is gone. Without a shared directory the verdict is written only
// after the outputs have arrived.
Result<rendezvous::Verdict> ReadEnd(const std::filesystem::path& dir, bool shared) {
  return shared ? ReadVerdictOrJournal(dir) : ReadVerdict(dir);
}

// The engine starts the job again in another allocation, unless it was cancelled.
bool IsRequeued(const ControllerOptions& options, const std::string& cancel_reason,
                const rendezvous::Verdict& verdict) {
  return options.engine->HasOwnQueue() && cancel_reason.empty() &&
         rendezvous::ContinuationOf(verdict) == rendezvous::Continuation::kNextAllocation;
}

class Run final : public JobRun {
 public:
  Run(const ControllerOptions& options, net::Loop* loop, StoredRun stored, Observer observer)
      : options_(options),
        tasks_(loop),
        id_(stored.record.id),
        dir_(options.home.job_dir(id_)),
        shared_(options.engine->SharesJobDirectory()),
        phase_(stored.record.state == JobState::kPending ? Phase::kWaiting : Phase::kAttaching),
        job_(std::move(stored.job)),
        event_batcher_({options.store, options.clock, loop, options.executors.store,
                        options.executors.store != nullptr},
                       std::move(stored.record), EndedAttemptsOf(stored.events)),
        reporter_(std::move(observer), &event_batcher_, loop, dir_, options),
        logs_(LogStore(dir_), reporter_.observer().on_log, reporter_.observer().rest_of_logs),
        admission_(&options_, id_, &tasks_, AdmissionCalls()),
        coordinator_(LinkOptions(LastCoordinatorSeq(stored.events)), LinkCallbacks()),
        applier_(ApplierOptions()),
        queued_(event_batcher_.record().state < JobState::kRunning),
        calls_({options.engine, options.EngineName(), options.home, options.clock, id_, &tasks_,
                options.executors.engine, options.lead}),
        takeover_(dir_, shared_, &calls_, &tasks_, TakeoverCalls()),
        ending_(&options_, id_, &tasks_, &event_batcher_, &calls_, EndingCalls()) {
    applier_.RestoreMembership(MembershipAfter(&job_, stored.events));
  }

  ~Run() override {
    tasks_.CancelAll();
    engine_watch_.reset();
  }

  void Begin() {
    tasks_.PostAfter(Duration(0), [this] {
      if (phase_ == Phase::kWaiting) admission_.Begin(event_batcher_.record(), job_);
      if (phase_ == Phase::kAttaching) BeginAttach();
    });
  }
  void Drain(const std::string& reason) override;
  void Kill(const std::string& reason) override;
  void Suspend(const std::string& reason) override;
  void Scale(const std::string& role, int replicas, const std::string& reason,
             std::function<void(const Status&)> done) override;

 private:
  enum class Phase : uint8_t { kWaiting, kAttaching, kRunning, kCleanup, kDone };

  AdmissionCallbacks AdmissionCalls();
  void OnAdmitted(JobRecord record);
  void YieldJob(std::optional<JobRecord> record);
  void StartTasks();
  Status MakeTasks();
  void WatchEngine();
  void BeginAttach();
  TakeoverCallbacks TakeoverCalls();
  bool EndWith(const rendezvous::Verdict& verdict);
  void OnTakenOver();
  CoordinatorLinkOptions LinkOptions(int64_t after_seq);
  CoordinatorLinkCallbacks LinkCallbacks();
  TaskApplier::Options ApplierOptions();
  void OnApplied(const Status& status, bool first);
  void OnOutputsFetched(const Status& status);
  void OnOutputsPlaced(const Status& status);

  void OnEngine(const engine::TaskEvent& event);
  void OnStopped(bool stopped, const std::string& why);
  void CancelWhileStopped();
  void OnCoordinatorEnd(const engine::TaskEvent& event);
  void OnEngineQueue(const std::string& why);
  void WaitForRequeue();
  void DropClient();
  void OnEvent(const rendezvous::JobEvent& event);
  void Deliver(const rendezvous::JobEvent& event);  // to the store and the observer
  void OnClosed(const Status& status);

  void Fail(const std::string& reason, Code code = Code::kInternal);
  void FailWithLastLine(const std::string& reason);  // of the coordinator
  void EndBy(const rendezvous::Verdict& verdict);
  void End(JobState state, const std::string& reason);
  JobEndingCallbacks EndingCalls();
  void Finish(const Status& stored);

  const ControllerOptions options_;
  LoopTaskGroup tasks_;
  const std::string id_;
  const std::filesystem::path dir_;
  const bool shared_;  // the job's processes see dir_
  Phase phase_;
  job::Job job_;  // constant after admission
  EventBatcher event_batcher_;
  RunReporter reporter_;
  LogDelivery logs_;
  AdmissionWaiter admission_;

  std::string engine_wait_reason_;  // the engine's reason why the coordinator does not run
  PendingReasons pending_reasons_;  // reasons of the tasks
  std::string cancel_reason_;       // argument of Drain or Kill
  CoordinatorLink coordinator_;
  TaskApplier applier_;
  ScaleRequests scale_requests_{&tasks_};
  bool queued_;           // with an engine that queues jobs: the coordinator does not run yet
  bool stopped_ = false;  // the engine reports the processes stopped by its owner
  bool awaiting_requeue_ = false;  // its coordinator ended, to continue in another allocation
  std::unique_ptr<engine::Engine::Watcher> engine_watch_;
  std::optional<rendezvous::Verdict> verdict_;  // set while outputs are being fetched
  AsyncEngineCalls calls_;
  Takeover takeover_;
  JobEnding ending_;
};

// ---- Waiting ------------------------------------------------------------------------------------

AdmissionCallbacks Run::AdmissionCalls() {
  return {.on_admitted = std::bind_front(&Run::OnAdmitted, this),
          .on_taken = std::bind_front(&Run::YieldJob, this),
          .on_wait = [this](const std::string& why, bool first) -> Status {
            reporter_.TellState(JobState::kPending, why);
            if (!first) return Status::Ok();
            return WriteWorkDir(dir_, options_.work_dir);
          },
          .on_failed = [this](const Status& why) { Fail(why.message(), why.code()); }};
}

void Run::OnAdmitted(JobRecord record) {
  if (phase_ != Phase::kWaiting) return;
  if (auto job = job::FromJson(record.job); job.ok()) job_ = std::move(*job);  // may be scaled
  event_batcher_.SetRecord(std::move(record));
  reporter_.TellState(JobState::kAdmitted, "");
  StartTasks();
}

// While it waited, the job was suspended, ended or taken over by another process.
void Run::YieldJob(std::optional<JobRecord> record) {
  if (phase_ != Phase::kWaiting) return;
  phase_ = Phase::kCleanup;
  if (record) event_batcher_.SetRecord(std::move(*record));
  tasks_.PostAfter(Duration(0), [this] { Finish(Status::Ok()); });
}

// ---- Starting -----------------------------------------------------------------------------------

void Run::StartTasks() {
  phase_ = Phase::kRunning;
  reporter_.RecordState(JobState::kStarting);
  if (const Status made = MakeTasks(); !made.ok()) return Fail(made.message(), made.code());
  applier_.Apply();
}

Status Run::MakeTasks() {
  TRY(WriteSecrets(options_.secrets, event_batcher_.record().team, job_, dir_));
  TRY(WriteJobDir(dir_, id_, job::ToJson(job_), options_.work_dir));
  TRY(logs_.Begin());
  TRY(coordinator_.Watch());
  WatchEngine();
  applier_.StartMembership();
  return Status::Ok();
}

void Run::WatchEngine() {
  engine_watch_ =
      options_.engine->Watch(id_, [this, poster = tasks_.poster()](const engine::TaskEvent& event) {
        poster.Post([this, event] { OnEngine(event); });
      });
}

// ---- Taking over a job that an earlier controller has admitted ----------------------------------

void Run::BeginAttach() {
  // Its processes start after the directory is complete, so none can exist.
  if (!IsJobDirComplete(dir_)) return StartTasks();
  Status begun = logs_.Begin();
  if (begun.ok() && !std::filesystem::exists(job::JobDir(dir_).secrets()))  // of a backup
    begun = WriteSecrets(options_.secrets, event_batcher_.record().team, job_, dir_);
  if (!begun.ok()) return Fail(begun.message(), begun.code());
  WatchEngine();
  takeover_.Begin();
}

TakeoverCallbacks Run::TakeoverCalls() {
  return {.end_with = std::bind_front(&Run::EndWith, this),
          .apply = [this] { applier_.Apply(); },
          .on_note = std::bind_front(&RunReporter::Note, &reporter_),
          .on_done = std::bind_front(&Run::OnTakenOver, this)};
}

// The coordinator decided and is gone, or no controller was connected: its journal has the events
// that it could not send.
bool Run::EndWith(const rendezvous::Verdict& verdict) {
  if (IsRequeued(options_, cancel_reason_, verdict)) return false;
  const auto missed = rendezvous::ReadJournalEvents(dir_, job_, coordinator_.last_seq());
  if (!missed.ok()) LogWarning("job {}: {}", id_, missed.status().message());
  for (const rendezvous::JobEvent& event : missed.value_or({})) Deliver(event);
  event_batcher_.AddVerdict(verdict);
  EndBy(verdict);
  return true;
}

void Run::OnTakenOver() {
  phase_ = Phase::kRunning;
  if (event_batcher_.record().state == JobState::kAdmitted) {
    reporter_.RecordState(JobState::kStarting);
  }
  const std::vector<engine::TaskEvent> events = takeover_.TakeEvents();
  for (const engine::TaskEvent& event : events) OnEngine(event);
  const Status watching = coordinator_.Watch();
  if (!watching.ok()) return Fail(watching.message(), watching.code());
  if (phase_ != Phase::kRunning) return;
  if (!shared_ || (!options_.engine->HasOwnQueue() && coordinator_.running()))
    coordinator_.Connect();
}

TaskApplier::Options Run::ApplierOptions() {
  return {.id = id_,
          .paths = {dir_, options_.work_dir, options_.program, shared_, {}},
          .job = &job_,
          .calls = &calls_,
          .is_running = [this] { return phase_ < Phase::kCleanup; },
          .on_applied = std::bind_front(&Run::OnApplied, this)};
}

void Run::OnApplied(const Status& status, bool first) {
  if (phase_ == Phase::kAttaching) return takeover_.OnApplied(status);
  if (status.code() == Code::kAborted) {  // the lead is not held: the store does not answer
    return tasks_.PostAfter(kAgain, [this] {
      if (phase_ == Phase::kRunning) applier_.Apply();
    });
  }
  if (!status.ok() && !applier_.applied()) return Fail(status.message(), status.code());
  if (!status.ok()) reporter_.Note("tasks cannot be started: " + status.message());
  if (first && !shared_) coordinator_.Connect();  // so that a wait for it has an end
}

CoordinatorLinkOptions Run::LinkOptions(int64_t after_seq) {
  return {.loop = tasks_.loop(),
          .tasks = &tasks_,
          .engine = options_.engine,
          .executor = options_.executors.engine,
          .connect = options_.connect,
          .id = id_,
          .dir = dir_,
          .shared = shared_,
          .job = &job_,
          .logs = &logs_,
          .after_seq = after_seq,
          .epoch = options_.lead.epoch};
}

CoordinatorLinkCallbacks Run::LinkCallbacks() {
  return {.may_connect = [this] { return phase_ == Phase::kRunning; },
          .on_note = std::bind_front(&RunReporter::Note, &reporter_),
          .on_event = std::bind_front(&Run::OnEvent, this),
          .on_closed = std::bind_front(&Run::OnClosed, this),
          .on_outputs = std::bind_front(&Run::OnOutputsFetched, this)};
}

// The job has ended and its outputs have arrived, or cannot be fetched.
void Run::OnOutputsFetched(const Status& status) {
  if (!verdict_ || phase_ != Phase::kRunning) return;
  const bool saved = verdict_->state == JobState::kCancelled &&
                     rendezvous::EndedWell(*verdict_, job_.success.roles);
  const bool places = status.ok() && (saved || verdict_->state == JobState::kSucceeded);
  if (!places) return OnOutputsPlaced(status);
  CallBlocking(
      options_.executors.store, tasks_.poster(),
      [dir = dir_, outputs = job_.outputs] { return PlaceOutputs(dir, outputs); },
      std::bind_front(&Run::OnOutputsPlaced, this));
}

void Run::OnOutputsPlaced(const Status& status) {
  if (!verdict_ || phase_ != Phase::kRunning) return;
  if (!status.ok()) reporter_.Record("outputs may be missing: " + status.message());
  if (!job_.outputs.empty()) FailOnLostOutputs(status, &*verdict_);
  if (const Status written = WriteVerdict(dir_, *verdict_); !written.ok())
    reporter_.Note("the verdict could not be written: " + written.message());
  EndBy(*verdict_);
}

// ---- What the engine says -----------------------------------------------------------------------

void Run::OnEngine(const engine::TaskEvent& event) {
  using engine::TaskPhase;
  if (phase_ == Phase::kAttaching) takeover_.AddEvent(event);
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
      OnEngineQueue(event.end.reason);
    if (event.phase == TaskPhase::kRunning)
      options_.engine->HasOwnQueue() ? OnEngineQueue("") : coordinator_.ConnectAfterDelay();
    return;
  }
  if (const std::string wait = pending_reasons_.ApplyEvent(event); !wait.empty())
    reporter_.Record(wait);
  if (event.phase == TaskPhase::kRefused) {
    coordinator_.Send([event](rendezvous::CoordinatorClient* client) {
      client->ReportRefused(event.role, event.index, event.end.reason);
    });
    return;
  }
  if (applier_.ApplyEvent(event)) applier_.Apply();
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
  reporter_.Record(why);
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

// The job waits in the engine's queue, or has left it (`why` empty).
void Run::OnEngineQueue(const std::string& why) {
  engine_wait_reason_ = why;
  if (!why.empty()) reporter_.Note(why);
  if (std::exchange(queued_, !why.empty()) || queued_) event_batcher_.SetReason(why);
  if (queued_) return;
  if (std::exchange(awaiting_requeue_, false)) coordinator_.Disconnect();  // from the last one
  coordinator_.Connect();
}

// The tasks have saved and end; the engine restarts them in another allocation with a new
// coordinator.
void Run::WaitForRequeue() {
  if (std::exchange(awaiting_requeue_, true)) return;
  reporter_.Record(rendezvous::kContinuesInNextAllocation);
  coordinator_.AckVerdict();
}

void Run::OnCoordinatorEnd(const engine::TaskEvent& event) {
  if (awaiting_requeue_) return;
  // It may have written its verdict and died before it sent it.
  if (const Result<rendezvous::Verdict> verdict = ReadEnd(dir_, shared_); verdict.ok()) {
    if (!EndWith(*verdict)) WaitForRequeue();
    return;
  }
  const int deaths = coordinator_.CountDeath();
  const std::string how = DescribeCoordinatorEnd(event.end);
  if (deaths >= options_.coordinator_attempts) {
    return FailWithLastLine(fmt::format(
        "its coordinator ended {} times without coming up; the last one {}", deaths, how));
  }
  reporter_.Record("the coordinator " + how + "; it is being started again");
}

// ---- What the coordinator says ------------------------------------------------------------------

void Run::OnEvent(const rendezvous::JobEvent& event) {
  using Type = rendezvous::JobEvent::Type;
  if (phase_ != Phase::kRunning) return;
  if (event.type == Type::kVerdict && IsRequeued(options_, cancel_reason_, event.verdict))
    return WaitForRequeue();
  Deliver(event);
  if (applier_.ApplyEvent(event)) applier_.Apply();
  if (event.type != Type::kVerdict || verdict_) return;
  if (shared_) return EndBy(event.verdict);
  verdict_ = event.verdict;
  coordinator_.FinishOutputs();
}

void Run::Deliver(const rendezvous::JobEvent& event) {
  event_batcher_.AddEvent(event);
  scale_requests_.ApplyEvent(event);
  if (event.type == rendezvous::JobEvent::Type::kJob && event.job_state != JobState::kStarting)
    reporter_.TellState(event.job_state, event.text);
  reporter_.TellEvent(event);
}

void Run::OnClosed(const Status& status) {
  if (phase_ != Phase::kRunning) return;
  if (status.code() == Code::kAborted) return;  // another server leads, and ends this run soon
  if (awaiting_requeue_ || (shared_ && coordinator_.starting())) return DropClient();
  if (verdict_) return;  // it is known, and the line that fetches outputs says what they are
  if (const Result<rendezvous::Verdict> verdict = ReadEnd(dir_, shared_);
      verdict.ok() && EndWith(*verdict))
    return;
  if (!shared_ && !engine_wait_reason_.empty()) {
    return Fail(fmt::format("its coordinator did not run within {}: {}",
                            FormatDuration(job_.limits.gather), engine_wait_reason_));
  }
  FailWithLastLine("its coordinator cannot be reached: " +
                   (status.ok() ? "it closed the connection without a verdict" : status.message()));
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
  if (phase_ == Phase::kAttaching)
    return tasks_.PostAfter(kAgain, [this, reason] { Drain(reason); });
  if (cancel_reason_.empty()) cancel_reason_ = reason;
  // A resumed job that has not started yet returns to suspended: nothing is lost.
  const bool resumed = std::filesystem::exists(job::JobDir(dir_).resumes());
  if (phase_ == Phase::kWaiting || (coordinator_.starting() && !coordinator_.connected_once()))
    return End(resumed ? JobState::kSuspended : JobState::kCancelled, reason);
  if (queued_ && options_.engine->HasOwnQueue()) return End(JobState::kCancelled, reason);
  coordinator_.Ask([reason](rendezvous::CoordinatorClient* client) { client->Drain(reason); });
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
  if (phase_ == Phase::kAttaching)
    return tasks_.PostAfter(kAgain, [this, reason] { Suspend(reason); });
  const bool queued = queued_ && options_.engine->HasOwnQueue();
  if (phase_ == Phase::kWaiting || queued ||
      (coordinator_.starting() && !coordinator_.connected_once()))
    return End(JobState::kSuspended, reason);
  coordinator_.Ask([reason](rendezvous::CoordinatorClient* client) { client->Suspend(reason); });
}

void Run::Scale(const std::string& role, int replicas, const std::string& reason,
                std::function<void(const Status&)> done) {
  if (phase_ >= Phase::kCleanup) return done(FailedPrecondition("job " + id_ + " has ended"));
  if (phase_ == Phase::kWaiting) return admission_.Scale(role, replicas, std::move(done));
  scale_requests_.Add(role, replicas, std::move(done));
  coordinator_.Send([role, replicas, reason](rendezvous::CoordinatorClient* client) {
    client->Scale(role, replicas, reason);
  });
}

// ---- The end ------------------------------------------------------------------------------------

void Run::Fail(const std::string& reason, Code code) {
  if (verdict_) return OnOutputsFetched(Unavailable(reason));
  if (!cancel_reason_.empty()) return End(JobState::kCancelled, cancel_reason_);
  if (reporter_.observer().on_failed) reporter_.observer().on_failed(code);
  End(JobState::kFailed, reason);
}

void Run::FailWithLastLine(const std::string& reason) {
  calls_.FindLastLine(kCoordinatorRole, 0, [this, reason](const std::string& line) {
    if (phase_ == Phase::kRunning) Fail(reason + line);
  });
}

void Run::EndBy(const rendezvous::Verdict& verdict) {
  if (verdict.gathered || verdict.state != JobState::kFailed || !cancel_reason_.empty() ||
      !options_.not_gathered || !options_.not_gathered(id_))
    return End(verdict.state, verdict.reason);
  End(JobState::kSuspended, verdict.reason + "; it waits in the queue again");
}

void Run::End(JobState state, const std::string& reason) {
  if (phase_ >= Phase::kCleanup) return;
  phase_ = Phase::kCleanup;
  admission_.Stop();
  takeover_.Stop();
  scale_requests_.EndAll(FailedPrecondition("job " + id_ + " has ended"));
  calls_.BeginCleanup();
  if (state == JobState::kSucceeded && shared_) {  // else OnOutputsFetched has looked
    for (const std::string& text : MissingOutputs(job_.outputs)) reporter_.Record(text);
  }
  const std::string why = state == JobState::kFailed ? pending_reasons_.Explain(reason) : reason;
  reporter_.FinishSeries();
  ending_.Begin(state, why);
}

JobEndingCallbacks Run::EndingCalls() {
  return {.acknowledge = [this] { coordinator_.AckVerdict(); },
          .on_remains =
              [this](const Status& why) {
                if (applier_.applied())  // else the job's own reason says why
                  return reporter_.Note("resources of the job may remain: " + why.message());
                Log(LogLevel::kInfo, "job {}: {}", id_, why.message());
              },
          .on_done = std::bind_front(&Run::Finish, this),
          .on_superseded = [this] {  // this run only waits for the end of its supervisor
            phase_ = Phase::kDone;
            engine_watch_.reset();
            coordinator_.Close();
          }};
}

void Run::Finish(const Status& stored) {
  // The verdict is also in the job's directory, from which the next command records it.
  if (!stored.ok()) reporter_.Note("the end of the job could not be stored: " + stored.message());
  phase_ = Phase::kDone;
  engine_watch_.reset();
  coordinator_.Close();
  if (const Status shown = logs_.DeliverRest(); !shown.ok())
    reporter_.Note("not all output of the tasks was shown: " + shown.message());
  if (reporter_.observer().on_end) reporter_.observer().on_end(event_batcher_.record());
}

}  // namespace

std::unique_ptr<JobRun> StartJobRun(const ControllerOptions& options, net::Loop* loop,
                                    StoredRun stored, Observer observer) {
  auto run = std::make_unique<Run>(options, loop, std::move(stored), std::move(observer));
  run->Begin();
  return run;
}

}  // namespace shoal::controller
