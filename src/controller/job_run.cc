// One job's way through the loop: what each thing that can happen (the queue says yes, the engine
// or the coordinator speaks, the user presses Ctrl-C) does to it.
//
//   kWaiting ──admitted──▶ kStarting ──engine.Apply──▶ kRunning ──verdict──▶ kClearing ──▶ kDone
//
// Everything runs on the loop's thread, but for calls of the engine that wait for others
// (engine_calls.h). Nothing is polled: the queue waits for the store, the first dial for a file.

#include "controller/job_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/log.h"
#include "controller/admission.h"
#include "controller/coordinator_phase.h"
#include "controller/desired.h"
#include "controller/engine_calls.h"
#include "controller/file_watch.h"
#include "controller/loop_tasks.h"
#include "controller/outputs.h"
#include "controller/process_identity.h"
#include "controller/reconcile.h"
#include "controller/recorder.h"
#include "controller/shown_logs.h"
#include "controller/task_waits.h"
#include "job/json.h"
#include "rendezvous/file_giver.h"
#include "rendezvous/output_fetch.h"
#include "rendezvous/seed.h"

namespace shoal::controller {
namespace {

// The client dials on its own from here on, should the file's change not be told.
constexpr Duration kDialAnyway = std::chrono::milliseconds(250);
// So long a coordinator that was told to kill everything is waited for.
constexpr Duration kKillPatience = std::chrono::seconds(3);
// A job that waits for what others hold looks so often whether their controllers still live.
constexpr Duration kLookAfterOthers = std::chrono::seconds(5);

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
        recorder_(options.store, options.clock, loop, id_),
        logs_(LogStore(dir_), observer_.on_log),
        policy_(queue::MakeFifo()),
        calls_(options.engine, options.home, options.clock, id_) {}

  ~Run() override {
    tasks_.End();
    if (changes_id_ != 0) loop_->Cancel(changes_id_);
    engine_watch_.reset();
  }

  void Begin() {
    tasks_.Later(Duration(0), [this] { Admit(); });
  }
  void Drain(const std::string& reason) override;
  void Kill(const std::string& reason) override;

 private:
  enum class Phase : uint8_t { kWaiting, kStarting, kRunning, kClearing, kDone };

  void Note(const std::string& text) {
    if (observer_.on_note) observer_.on_note(text);
  }
  void Record(const std::string& text) {  // also in the job's record
    Note(text);
    recorder_.AddNote(text);
  }
  void TellState(JobState state, const std::string& why) {
    if (observer_.on_state) observer_.on_state(state, why);
  }

  void Admit();
  void WaitForStore(const std::string& why);
  void LeaveToOthers();
  void LookAfterOthers();
  void StartTasks();
  Status MakeTasks();
  Result<engine::DesiredJob> Desired();
  void ApplySoon();
  void Applied(const Status& status);
  void MakeAgain(const std::string& role);
  Status WatchForCoordinator();
  void DialAnyway() {
    tasks_.Later(kDialAnyway, [this] {
      if (!coordinator_.starting()) ConnectClient();
    });
  }
  void ConnectClient();
  void WithClient(std::function<void(rendezvous::Client*)> command);
  void OpenLines(const rendezvous::ClientOptions& like);
  void OutputsHere(Status status);

  void OnEngine(const engine::TaskEvent& event);
  void OnStopped(bool stopped, const std::string& why);
  void EndStopped();
  void OnCoordinatorEnd(const engine::TaskEvent& event);
  void TellWait(const std::string& why);
  void LeaveQueue();
  void GoOnLater();
  bool GoesOn(const rendezvous::Verdict& verdict) const;
  // What a coordinator that is gone has decided; where outputs have to come here, after them.
  Result<rendezvous::Verdict> ReadEnd() const {
    return shared_ ? ReadDecision(dir_) : ReadVerdict(dir_);
  }
  void LeaveClient();
  void OnEvent(const rendezvous::JobEvent& event);
  void OnClosed(const Status& status);

  void Fail(const std::string& reason, Code code = Code::kInternal);
  void End(JobState state, const std::string& reason);
  void Clear(const Status& stored);

  const ControllerOptions options_;
  net::Loop* const loop_;
  LoopTasks tasks_{loop_};
  const std::string id_;
  const std::filesystem::path dir_;
  const bool shared_;  // by the job's processes
  job::Job job_;       // constant once it is admitted
  const Observer observer_;
  Recorder recorder_;
  ShownLogs logs_;
  const std::unique_ptr<queue::Admission> policy_;

  Phase phase_ = Phase::kWaiting;
  std::string waiting_why_;
  std::string engines_why_;    // the coordinator does not run, as the engine says
  TaskWaits waits_;            // the others
  std::string cancel_reason_;  // of Drain or Kill
  CoordinatorPhase coordinator_;
  Roster roster_;
  bool applied_ = false;      // the engine took the tasks
  bool applying_ = false;     // it is asked to, on a thread of its own
  bool apply_again_ = false;  // the tasks have changed since that began
  bool connected_once_ = false;
  bool queued_ = true;          // where the engine has a queue: the coordinator does not run yet
  bool stopped_ = false;        // by the engine's owner, as its word is
  bool between_ = false;        // the coordinator has ended, to go on in another allocation
  int64_t last_seq_ = 0;        // of the coordinator's events
  int coordinator_deaths_ = 0;  // since it was last heard
  std::vector<std::function<void(rendezvous::Client*)>> pending_commands_;
  UniqueFd changes_;
  net::Loop::Id changes_id_ = 0;
  std::unique_ptr<Store::Watcher> store_watch_;
  std::unique_ptr<engine::Engine::Watcher> engine_watch_;
  std::unique_ptr<rendezvous::Client> client_;
  std::unique_ptr<rendezvous::OutputFetch> fetch_;
  std::unique_ptr<rendezvous::FileGiver> giver_;  // of a job with files
  std::optional<rendezvous::Verdict> verdict_;    // while outputs are fetched
  EngineCalls calls_;                             // the last: its threads use all of the above
};

// ---- Waiting ------------------------------------------------------------------------------------

void Run::Admit() {
  if (phase_ != Phase::kWaiting) return;
  const bool queues = options_.engine->QueuesItself();
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
    answer = queues ? AdmissionAnswer{Admitted::kYes, ""}
                    : MayStart(id_, unfinished, *capacity, *policy_,
                               [&root = options_.home.root(), this](const ProcessIdentity& owner) {
                                 return IsAlive(root, owner) && Answers(root, owner, options_.self);
                               });
    const WallTime now = options_.clock->Wall();
    if (answer.answer == Admitted::kYes) return {StateEvent(now, JobState::kAdmitted, "")};
    if (answer.answer == Admitted::kWait && answer.why != waiting_why_)
      return {StateEvent(now, JobState::kPending, answer.why)};
    return {};
  };
  const Status decided = options_.store->AppendDecided(id_, decide, Durability::kWritten);
  if (!decided.ok()) return Fail(decided.message());
  if (!mine) return LeaveToOthers();
  if (answer.answer == Admitted::kNever) return Fail(answer.why);
  if (answer.answer == Admitted::kWait) return WaitForStore(answer.why);
  store_watch_.reset();
  recorder_.Reload();
  if (auto job = job::FromJson(mine->job); job.ok())
    job_ = std::move(*job);  // may have been scaled
  TellState(JobState::kAdmitted, "");
  StartTasks();
}

// While it waited it was suspended, ended or taken over by another process.
void Run::LeaveToOthers() {
  phase_ = Phase::kClearing;
  store_watch_.reset();
  recorder_.Reload();
  tasks_.Later(Duration(0), [this] { Clear(Status::Ok()); });
}

void Run::WaitForStore(const std::string& why) {
  if (why != waiting_why_) TellState(JobState::kPending, why);
  waiting_why_ = why;
  if (store_watch_ != nullptr) return;
  // Where it is to begin, for who resumes what was suspended before it began.
  const Status made = WriteJobDir(dir_, id_, job::ToJson(job_), options_.work_dir);
  if (!made.ok()) return Fail(made.message());
  auto watch = options_.store->Watch([this] { tasks_.Post([this] { Admit(); }); });
  if (!watch.ok()) return Fail(watch.status().message());
  store_watch_ = std::move(*watch);
  tasks_.Post([this] { Admit(); });  // what changed before the watch began
  tasks_.Later(kLookAfterOthers, [this] { LookAfterOthers(); });
}

void Run::LookAfterOthers() {
  if (phase_ != Phase::kWaiting) return;
  if (const auto repaired = Reconcile(OptionsOf(options_)); !repaired.ok())
    Log(LogLevel::kWarning, "{}", repaired.status().message());
  Admit();
  tasks_.Later(kLookAfterOthers, [this] { LookAfterOthers(); });
}

// ---- Starting -----------------------------------------------------------------------------------

void Run::StartTasks() {
  phase_ = Phase::kStarting;
  TellState(JobState::kStarting, "");
  recorder_.AddState(JobState::kStarting, "");
  if (const Status made = MakeTasks(); !made.ok()) return Fail(made.message(), made.code());
}

Status Run::MakeTasks() {
  TRY(WriteJobDir(dir_, id_, job::ToJson(job_), options_.work_dir));
  TRY(logs_.Begin());
  TRY(WatchForCoordinator());
  engine_watch_ = options_.engine->Watch(id_, [this](const engine::TaskEvent& event) {
    tasks_.Post([this, event] { OnEngine(event); });
  });
  roster_ = Roster(&job_);
  if (options_.engine->QueuesItself()) {
    phase_ = Phase::kRunning;
    ApplySoon();
    return Status::Ok();
  }
  TRY_ASSIGN(const engine::DesiredJob desired, Desired());
  TRY(options_.engine->Apply(desired));
  applied_ = true;
  phase_ = Phase::kRunning;
  if (!shared_) ConnectClient();  // so that a wait for it has an end
  return Status::Ok();
}

Result<engine::DesiredJob> Run::Desired() {
  DesiredPlaces places{dir_, options_.work_dir, options_.program, shared_, {}};
  if (!shared_) {
    TRY_ASSIGN(places.seed, rendezvous::MakeSeed(dir_.string()));
  }
  return MakeDesiredJob(job_, id_, places, roster_);
}

// A cluster may take minutes to answer, or be away: Ctrl-C is heard meanwhile.
void Run::ApplySoon() {
  if (applying_) {
    apply_again_ = true;
    return;
  }
  auto desired = Desired();
  if (!desired.ok()) return Applied(desired.status());
  applying_ = true;
  calls_.Apply(std::move(*desired),
               [this](const Status& status) { tasks_.Post([this, status] { Applied(status); }); });
}

void Run::Applied(const Status& status) {
  applying_ = false;
  if (phase_ != Phase::kRunning) return;
  if (!status.ok() && !applied_) return Fail(status.message(), status.code());
  if (!status.ok()) Note("tasks cannot be made: " + status.message());
  const bool first = !std::exchange(applied_, true);
  if (first && !shared_) ConnectClient();  // so that a wait for it has an end
  if (std::exchange(apply_again_, false)) ApplySoon();
}

void Run::MakeAgain(const std::string& role) {
  if (options_.engine->QueuesItself()) return ApplySoon();
  const auto desired = Desired();
  const Status applied = desired.ok() ? options_.engine->Apply(*desired) : desired.status();
  if (!applied.ok()) Note("the tasks of " + role + " cannot be made: " + applied.message());
}

Status Run::WatchForCoordinator() {
  if (!shared_) return Status::Ok();
  TRY_ASSIGN(changes_, OpenChanges(dir_));
  TRY_ASSIGN(changes_id_, loop_->WatchReadable(changes_.get(), [this] {
    if (ReadChanges(changes_.get(), "coordinator.json")) ConnectClient();
  }));
  if (!options_.engine->QueuesItself()) DialAnyway();  // else when it runs
  return Status::Ok();
}

void Run::ConnectClient() {
  if (changes_id_ != 0) loop_->Cancel(std::exchange(changes_id_, 0));
  changes_.Reset();
  if (client_ != nullptr || phase_ != Phase::kRunning) return;
  rendezvous::ClientOptions options;
  options.job_dir = dir_.string();
  options.find = [this]() -> Result<rendezvous::CoordinatorAddress> {
    TRY_ASSIGN(const engine::Endpoint endpoint, options_.engine->Dial(id_));
    return rendezvous::CoordinatorAddress{endpoint.host, endpoint.port};
  };
  options.logs = logs_.wanted();
  if (!shared_) options.keep = dir_.string();
  options.after_seq = last_seq_;
  options.log_offsets = logs_.offsets();
  options.give_up_after = CoordinatorPatience(job_.limits, *options_.engine);
  if (shared_)
    options.lives = [this] { return coordinator_.Lives(std::bind_front(&Run::Note, this)); };
  rendezvous::ClientCallbacks callbacks;
  callbacks.on_connected = [this] {
    if (connected_once_) Note("the coordinator is back");
    connected_once_ = true;
    coordinator_deaths_ = 0;
  };
  callbacks.on_event = [this](const rendezvous::JobEvent& event) { OnEvent(event); };
  if (options.logs) callbacks.on_log = std::bind_front(&ShownLogs::Take, &logs_);
  callbacks.on_closed = [this](const Status& status) { OnClosed(status); };
  if (!shared_) OpenLines(options);
  client_ = options_.connect(loop_, std::move(options), std::move(callbacks));
  for (const auto& command : pending_commands_) command(client_.get());
  pending_commands_.clear();
}

// Where the job's processes do not see our directory: files go there, outputs come here.
void Run::OpenLines(const rendezvous::ClientOptions& like) {
  const rendezvous::OwnLine files{like.find, ReadToken(dir_).value_or(""), dir_ / "files",
                                  like.give_up_after};
  rendezvous::OwnLine outputs = files;
  outputs.directory = dir_ / "outputs";
  if (!job_.files.empty()) giver_ = rendezvous::FileGiver::Start(loop_, files);
  fetch_ = rendezvous::OutputFetch::Start(loop_, outputs,
                                          [this](const Status& status) { OutputsHere(status); });
}

// The job is over, and its outputs are here, or cannot be had.
void Run::OutputsHere(Status status) {
  if (!verdict_ || phase_ != Phase::kRunning) return;
  const bool saved = verdict_->state == JobState::kCancelled &&
                     rendezvous::EndedWell(*verdict_, job_.success.roles);
  if (status.ok() && (saved || verdict_->state == JobState::kSucceeded))
    status = PlaceOutputs(dir_, job_.outputs);
  if (!status.ok()) Record("outputs may be missing: " + status.message());
  if (!job_.outputs.empty()) JudgePlacing(status, &*verdict_);
  if (const Status written = WriteVerdict(dir_, *verdict_); !written.ok())
    Note("the verdict could not be written: " + written.message());
  End(verdict_->state, verdict_->reason);
}

void Run::WithClient(std::function<void(rendezvous::Client*)> command) {
  if (client_ != nullptr) return command(client_.get());
  pending_commands_.push_back(std::move(command));
}

// ---- What the engine says -----------------------------------------------------------------------

void Run::OnEngine(const engine::TaskEvent& event) {
  using engine::TaskPhase;
  if (phase_ != Phase::kRunning) return;
  const bool gone = event.phase == TaskPhase::kEnded || event.phase == TaskPhase::kLost;
  if (event.stopped) return OnStopped(*event.stopped, event.end.reason);
  if (event.role == kCoordinatorRole) {
    coordinator_.Take(event);
    if (event.phase == TaskPhase::kRefused) {
      return Fail((connected_once_ ? "" : "its coordinator could not be started: ") +
                  event.end.reason);
    }
    if (gone) OnCoordinatorEnd(event);
    if (event.phase == TaskPhase::kStarting && !event.end.reason.empty())
      TellWait(event.end.reason);
    if (event.phase == TaskPhase::kRunning)
      options_.engine->QueuesItself() ? LeaveQueue() : DialAnyway();
    return;
  }
  if (const std::string wait = waits_.Take(event); !wait.empty()) Record(wait);
  if (event.phase == TaskPhase::kRefused) {
    WithClient([event](rendezvous::Client* client) {
      client->ReportRefused(event.role, event.index, event.end.reason);
    });
    return;
  }
  if (roster_.Take(event)) MakeAgain(event.role);
  if (gone &&
      (event.phase == TaskPhase::kLost || event.end.signal != 0 || event.end.exit_code != 0)) {
    WithClient([event](rendezvous::Client* client) {
      client->ReportLost(event.role, event.index, event.incarnation, event.end.reason);
    });
  }
}

// Its processes are stopped by the engine, or go on: a state, and no loss.
void Run::OnStopped(bool stopped, const std::string& why) {
  stopped_ = stopped;
  Record(why);
  recorder_.SetReason(stopped ? why : "");
  if (stopped && !cancel_reason_.empty()) return EndStopped();
  WithClient([stopped, why](rendezvous::Client* client) { client->Hold(stopped, why); });
}

// What is stopped hears nobody, perhaps not even its coordinator: it is given time, then ended.
void Run::EndStopped() {
  tasks_.Later(2 * job_.limits.stop_grace, [this] {
    if (stopped_) End(JobState::kCancelled, cancel_reason_);
  });
}

// It is in the engine's own queue.
void Run::TellWait(const std::string& why) {
  queued_ = true;
  engines_why_ = why;
  Note(why);
  recorder_.SetReason(why);
}

void Run::LeaveQueue() {
  if (std::exchange(queued_, false)) recorder_.SetReason("");
  engines_why_.clear();
  if (std::exchange(between_, false)) client_.reset();  // it was the last coordinator's
  ConnectClient();
}

// Its tasks have saved and end; the engine starts them again, and their coordinator tells of it.
void Run::GoOnLater() {
  if (std::exchange(between_, true)) return;
  Record(rendezvous::kGoesOnLater);
  if (client_ != nullptr) client_->AckVerdict();
}

bool Run::GoesOn(const rendezvous::Verdict& verdict) const {
  return options_.engine->QueuesItself() && verdict.state == JobState::kSuspended &&
         verdict.reason == rendezvous::kGoesOnLater && cancel_reason_.empty();
}

void Run::OnCoordinatorEnd(const engine::TaskEvent& event) {
  if (between_) return;
  // It may have decided, written its verdict and died before it could tell.
  if (const Result<rendezvous::Verdict> verdict = ReadEnd(); verdict.ok()) {
    if (GoesOn(*verdict)) return GoOnLater();
    recorder_.TakeVerdict(*verdict);
    return End(verdict->state, verdict->reason);
  }
  ++coordinator_deaths_;
  const std::string how = DescribeCoordinatorEnd(event.end);
  if (coordinator_deaths_ >= options_.coordinator_attempts) {
    return Fail(fmt::format("its coordinator ended {} times without coming up; the last one {}{}",
                            coordinator_deaths_, how, calls_.LastLine(kCoordinatorRole, 0)));
  }
  Record("the coordinator " + how + "; it is being started again");
}

// ---- What the coordinator says ------------------------------------------------------------------

void Run::OnEvent(const rendezvous::JobEvent& event) {
  using Type = rendezvous::JobEvent::Type;
  if (phase_ != Phase::kRunning) return;
  last_seq_ = std::max(last_seq_, event.seq);
  if (event.type == Type::kVerdict && GoesOn(event.verdict)) return GoOnLater();
  recorder_.Take(event);
  if (roster_.Take(event)) MakeAgain(event.role);
  if (event.type == Type::kJob && event.job_state != JobState::kStarting)
    TellState(event.job_state, event.text);
  if (observer_.on_event) observer_.on_event(event);
  if (event.type != Type::kVerdict || verdict_) return;
  if (shared_) return End(event.verdict.state, event.verdict.reason);
  verdict_ = event.verdict;
  fetch_->Finish();
}

void Run::OnClosed(const Status& status) {
  if (phase_ != Phase::kRunning) return;
  if (between_ || (shared_ && coordinator_.starting())) return LeaveClient();
  if (verdict_) return;  // it is known, and the line that fetches outputs says what they are
  if (const Result<rendezvous::Verdict> verdict = ReadEnd(); verdict.ok()) {
    recorder_.TakeVerdict(*verdict);
    return End(verdict->state, verdict->reason);
  }
  if (!shared_ && !engines_why_.empty()) {
    return Fail(fmt::format("its coordinator did not run within {}: {}",
                            FormatDuration(job_.limits.gather), engines_why_));
  }
  Fail(
      fmt::format("its coordinator cannot be reached: {}{}",
                  status.ok() ? "it closed the connection before it had decided" : status.message(),
                  calls_.LastLine(kCoordinatorRole, 0)));
}

// Until the next coordinator runs. The client is in the middle of telling us.
void Run::LeaveClient() {
  tasks_.Later(Duration(0), [this] {
    client_.reset();
    between_ = false;
    if (!cancel_reason_.empty()) Drain(cancel_reason_);  // the next one has not heard it
  });
}

// ---- What the user says -------------------------------------------------------------------------

void Run::Drain(const std::string& reason) {
  if (phase_ >= Phase::kClearing) return;
  if (cancel_reason_.empty()) cancel_reason_ = reason;
  // What was resumed and has not begun yet has lost nothing.
  const bool resumed = std::filesystem::exists(dir_ / "resumes");
  if (phase_ == Phase::kWaiting || (coordinator_.starting() && !connected_once_))
    return End(resumed ? JobState::kSuspended : JobState::kCancelled, reason);
  if (queued_ && options_.engine->QueuesItself()) return End(JobState::kCancelled, reason);
  WithClient([reason](rendezvous::Client* client) { client->Drain(reason); });
  if (stopped_) EndStopped();
}

void Run::Kill(const std::string& reason) {
  // What cannot be removed now is recorded, and tried again by the next command.
  if (phase_ == Phase::kClearing) {
    recorder_.GiveUp();
    return calls_.Interrupt();
  }
  if (phase_ == Phase::kDone) return;
  if (cancel_reason_.empty()) cancel_reason_ = reason;
  if (phase_ == Phase::kWaiting || client_ == nullptr || !client_->connected())
    return End(JobState::kCancelled, reason);
  client_->Kill(reason);
  tasks_.Later(kKillPatience, [this, reason] { End(JobState::kCancelled, reason); });
}

// ---- The end ------------------------------------------------------------------------------------

void Run::Fail(const std::string& reason, Code code) {
  if (verdict_) return OutputsHere(Unavailable(reason));
  if (!cancel_reason_.empty()) return End(JobState::kCancelled, cancel_reason_);
  if (observer_.on_failed) observer_.on_failed(code);
  End(JobState::kFailed, reason);
}

void Run::End(JobState state, const std::string& reason) {
  if (phase_ >= Phase::kClearing) return;
  phase_ = Phase::kClearing;
  store_watch_.reset();
  calls_.BeginClear();
  if (state == JobState::kSucceeded && shared_) {  // else OutputsHere has looked
    for (const std::string& text : MissingOutputs(job_.outputs)) Record(text);
  }
  const std::string why = state == JobState::kFailed ? waits_.Explain(reason) : reason;
  recorder_.End(state, why);
  if (client_ != nullptr) client_->AckVerdict();
  calls_.Clear(state, [this](const Status& stopped) {
    tasks_.Post([this, stopped] {
      if (!stopped.ok() && applied_)
        Note("something of the job may be left: " + stopped.message());
      else if (!stopped.ok())  // the job's own reason says why its engine could make nothing
        Log(LogLevel::kInfo, "job {}: {}", id_, stopped.message());
      recorder_.StoreRest(std::bind_front(&Run::Clear, this));
    });
  });
}

void Run::Clear(const Status& stored) {
  // A verdict stands in the job's directory as well: the next command records it.
  if (!stored.ok()) Note("the end of the job could not be stored: " + stored.message());
  phase_ = Phase::kDone;
  engine_watch_.reset();
  client_.reset();
  fetch_.reset();
  giver_.reset();
  if (const Status shown = logs_.ShowRest(); !shown.ok())
    Note("not all lines of the tasks are shown: " + shown.message());
  if (observer_.on_end) observer_.on_end(recorder_.record());
}

}  // namespace

std::unique_ptr<JobRun> StartJobRun(const ControllerOptions& options, net::Loop* loop,
                                    const std::string& id, job::Job job, Observer observer) {
  auto run = std::make_unique<Run>(options, loop, id, std::move(job), std::move(observer));
  run->Begin();
  return run;
}

}  // namespace shoal::controller
