#include "rendezvous/coordinator/coordinator.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "job/execution/job_dir.h"
#include "net/websocket.h"
#include "rendezvous/bootstrap/job_files.h"
#include "rendezvous/coordinator/cluster_broadcast.h"
#include "rendezvous/coordinator/coordinator_listener.h"
#include "rendezvous/coordinator/durability_gate.h"
#include "rendezvous/coordinator/event_publisher.h"
#include "rendezvous/coordinator/job_clock.h"
#include "rendezvous/coordinator/launcher_commands.h"
#include "rendezvous/coordinator/member.h"
#include "rendezvous/coordinator/record_events.h"
#include "rendezvous/journal/journal_replication.h"
#include "rendezvous/logs/task_logs.h"
#include "rendezvous/protocol/coordinator_connection.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/transfer/transfers.h"

namespace shoal::rendezvous {
namespace {

constexpr auto kHeartbeat = std::chrono::seconds(1);
constexpr auto kCloseTimeout = std::chrono::seconds(1);  // to send the closing messages

// Connects the parts of a coordinator: messages become events of the core, the core's actions go
// through the DurabilityGate, and records and log lines go to the EventPublisher.
//
// Lifecycle: Open listens; the job begins at once or, in no-shared-filesystem mode, with the
// controller's connection; End closes all connections, and Leave calls `on_end` when they are gone.
// Connections are known by MemberId, because a connection may vanish in any call.
class SocketCoordinator final : public Coordinator {
 public:
  SocketCoordinator(net::Loop* loop, CoordinatorOptions options, JobFiles files,
                    std::function<void(const Status&)> on_end)
      : loop_(loop),
        options_(std::move(options)),
        id_(std::move(files.id)),
        token_(std::move(files.token)),
        resumes_(files.resumes),
        logs_dir_(job::JobDir(options_.job_dir).logs()),
        on_end_(std::move(on_end)),
        core_(std::move(files.job), options_.limits),
        publisher_(logs_dir_),
        transfers_(options_.job_dir, id_, options_.no_shared_filesystem,
                   [this](const std::string& text) { Note(text); }),
        replication_(job::JobDir(options_.job_dir).journal()),
        task_logs_(logs_dir_, [this](const LogKey& key, const Status& why) {
          Note("log lines of " + key.role + " " + std::to_string(key.index) +
               " are lost: " + why.message());
        }) {
    task_logs_.OnFinishedLate([this](const LogKey& key) {
      publisher_.LogGrew(key, task_logs_.size(key));
      loop_->After(Duration::zero(), [this, alive = alive_, key] {
        if (*alive) ReleaseEnd(key);
      });
    });
  }

  ~SocketCoordinator() override {
    *alive_ = false;
    for (const net::Loop::Id timer : {tick_timer_, heartbeat_timer_, wait_timer_, end_timer_})
      loop_->Cancel(timer);
  }

  Status Open() {
    TRY(MakeDirectories(logs_dir_, 0700));
    TRY_ASSIGN(log_directory_id_, DirectoryIdentity(logs_dir_));
    started_ = RealClock::Get()->Wall();
    if (!core_.job().files.empty()) transfers_.ExpectFiles();
    const bool first = options_.first_incarnation && resumes_ == 0;
    const bool waits = options_.no_shared_filesystem && !replication_.MayBegin(first);
    if (!waits) TRY(OpenGate());
    TRY(Listen());
    waits ? WaitForController() : Begin();
    ScheduleHeartbeat();
    return Status::Ok();
  }

  uint16_t port() const override { return server_->port(); }
  int64_t syncs() const override { return gate_ ? gate_->syncs() : 0; }
  const CoordinatorCore& core() const override { return core_; }
  void Stop(const std::string& reason) override {
    started_job_ ? HandleEvent(Command{StopMode::kStop, reason}) : End(Unavailable(reason));
  }
  void Suspend(const std::string& reason) override { HandleEvent(rendezvous::Suspend{reason}); }
  void AwaitController() override { HandleEvent(ControllerAlive{}); }

 private:
  // ---- Opening ----

  DurabilityGateCallbacks GateCallbacks() {
    DurabilityGateCallbacks calls;
    calls.on_record = [this](const JournalRecord& record) {
      const auto event = EventOf(record, core_);
      const int64_t length = options_.no_shared_filesystem ? gate_->journal_bytes() : 0;
      if (options_.no_shared_filesystem) replication_.OnRecordAppended(record.seq, length);
      publisher_.Add(record.seq, event ? &*event : nullptr, length);
    };
    calls.perform = [this](const Action& action) { Perform(action); };
    calls.on_released = [this](int64_t seq) { publisher_.Release(seq); };
    calls.collect_descriptors = [this](auto* fds) { return task_logs_.TakeFinished(fds); };
    calls.on_waiting = [this](const Status& why) { Note("the job waits: " + why.message()); };
    calls.on_failed = [this](const Status& why) { End(why); };
    return calls;
  }

  Status OpenGate() {
    TRY_ASSIGN(auto opened, DurabilityGate::Open(loop_, options_.job_dir, options_.commit_delay,
                                                 GateCallbacks()));
    gate_ = std::move(opened.gate);
    restored_ = !opened.records.empty();
    if (options_.no_shared_filesystem && restored_)
      replication_.OnRecordAppended(opened.records.back().seq, gate_->journal_bytes());
    return Restore(opened.records);
  }

  void Begin() {
    started_job_ = true;
    ExecuteActions(core_.Begin(clock_.Now(), resumes_));
    // Records of an earlier coordinator are synced once before anything is told of them.
    if (restored_) gate_->CommitNow();
  }

  // No-shared-filesystem mode: nothing begins before the controller has connected.
  void WaitForController() {
    wait_timer_ = loop_->After(core_.job().limits.gather, [this] {
      End(Unavailable("the controller, which has the job's journal, did not connect within " +
                      FormatDuration(core_.job().limits.gather)));
    });
  }

  void HelloBeforeBegin(MemberId id, const json::object& hello) {
    Member& entry = connections_[id];
    entry.role = Member::Role::kObserver;
    TakeEarlyMessages(id, replication_.AddHello(entry.connection.get(), id, hello));
  }

  void TakeEarlyMessages(MemberId id, const Result<bool>& begins) {
    if (!begins.ok()) return Close(id, begins.status().message());
    if (*begins) BeginAfterRestore();
  }

  void BeginAfterRestore() {
    loop_->Cancel(std::exchange(wait_timer_, 0));
    if (const Status opened = OpenGate(); !opened.ok()) return End(opened);
    Begin();
    if (restored_) Note("the coordinator goes on from the journal that its controller mirrored");
    for (const auto& [id, type, message] : replication_.TakeEarlyMessages()) {
      if (!connections_.contains(id)) continue;
      type.empty() ? HandleHello(id, message) : HandleMessage(id, type, message);
    }
  }

  // Deferred actions also wait for the controller's mirror.
  void SetMirroredBytes(Connection* connection, int64_t journal_bytes) {
    if (auto fits =
            replication_.SetMirroredBytes(connection, journal_bytes, RealClock::Get()->Now());
        !fits.ok())
      return End(fits);
    UpdateMirroredSeq();
  }

  void UpdateMirroredSeq() {
    const auto kept = replication_.mirrored_seq();
    task_logs_.SetMirrored(kept.has_value());
    gate_->SetMirroredSeq(kept);
  }

  Status Restore(const std::vector<JournalRecord>& records) {
    TRY(core_.Restore(records).With(job::JobDir(options_.job_dir).journal().string()));
    if (records.empty()) return Status::Ok();
    // The job's time goes on from where the journal stands.
    clock_.ResumeFrom(records.back().at);
    // Events before the resumption were published by an earlier coordinator: only role sizes are
    // repeated.
    const bool now = resumes_ > 0 && core_.job_state() == job::JobState::kSuspended;
    const int64_t resumed = now ? records.back().seq : LastSeqBeforeResume(records);
    if (options_.no_shared_filesystem)
      publisher_.Add(records.front().seq, nullptr, gate_->journal_bytes());
    RestorePublisher(records, resumed, core_, logs_dir_, &publisher_);
    return Status::Ok();
  }

  Status Listen() {
    TRY_ASSIGN(server_, ListenForConnections(loop_, options_, core_.task_count(),
                                             [this](auto socket) { Accept(std::move(socket)); }));
    return WriteCoordinatorFile(options_.job_dir, {options_.host, server_->port()}, started_);
  }

  // ---- Connections ----

  void Accept(std::unique_ptr<net::WebSocket> socket) {
    const MemberId id = next_member_++;
    Connection::Callbacks calls;
    calls.on_proved = [this, id](const json::object& hello) { HandleHello(id, hello); };
    calls.on_message = [this, id](const std::string& type, const json::object& message) {
      HandleMessage(id, type, message);
    };
    calls.on_binary = [this, id](std::string_view frame) {
      const Status status = HandleBinary(id, frame);
      if (!status.ok()) Close(id, status.message());
    };
    calls.on_gone = [this, id] { HandleDisconnect(id); };
    connections_[id].connection =
        Connection::Greet(loop_, std::move(socket), token_, std::move(calls));
  }

  void HandleMessage(MemberId id, const std::string& type, const json::object& message) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || found->second.superseded) return;
    const bool launcher = found->second.role == Member::Role::kLauncher;
    if (!started_job_)
      return TakeEarlyMessages(
          id, replication_.HandleMessage(found->second.connection.get(), id, type, message));
    const Status status = launcher ? FromLauncher(id, type, message)
                                   : FromController(found->second.connection.get(), type, message);
    if (!status.ok()) Close(id, "bad message '" + CleanText(type, 40) + "': " + status.message());
  }

  Status HandleBinary(MemberId id, std::string_view frame) {
    Connection* const connection = ConnectionOf(id);
    if (!started_job_) return replication_.ReceiveJournal(connection, frame);
    return transfers_.Serves(connection) ? transfers_.Received(connection, frame)
                                         : StoreLog(id, frame);
  }

  void Close(MemberId id, const std::string& why) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    LogWarning("closing the connection from {}: {}", found->second.connection->address(), why);
    found->second.connection->Close(why);
  }

  void HandleHello(MemberId id, const json::object& hello) {
    const std::string kind = GetStringOr(hello, "kind", "");
    const auto close = [this](MemberId other) {
      if (Connection* const earlier = ConnectionOf(other)) earlier->Send("superseded", {});
      Close(other, "another server leads");
    };
    if (kind == "controller" && !leader_.Admit(hello, id, &connections_, close)) return;
    if (!started_job_) return HelloBeforeBegin(id, hello);
    Member& entry = connections_[id];
    if (kind == "task") {
      auto task = TaskHelloFromJson(hello);
      if (!task.ok()) return Close(id, task.status().message());
      entry.role = Member::Role::kLauncher;
      HandleEvent(LauncherJoined{id, task->role, task->index, task->incarnation, task->instance,
                                 task->generation, task->last_attempt, task->has_program,
                                 task->node});
      return;
    }
    entry.role = kind == "controller" ? Member::Role::kController : Member::Role::kObserver;
    const Status status = Serve(entry.connection.get(), kind, hello);
    if (!status.ok()) return Close(id, status.message());
    if (kind != "controller") return;
    if (options_.no_shared_filesystem && hello.contains("journal"))
      SetMirroredBytes(entry.connection.get(), GetIntOr(hello, "journal", 0));
    HandleEvent(ControllerConnected{});
  }

  Status Serve(Connection* connection, const std::string& kind, const json::object& hello) {
    if (kind == "outputs") {
      TRY_ASSIGN(const LogKey key, ParseAttempt(core_, hello));
      return transfers_.Add(connection, hello, key);
    }
    if (transfers_.IsTransfer(kind)) return transfers_.Add(connection, hello, {});
    if (kind != "controller" && kind != "observer") return InvalidArgument("unknown kind");
    return publisher_.Subscribe(connection, hello);
  }

  void HandleDisconnect(MemberId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const Member entry = std::move(found->second);
    connections_.erase(found);
    publisher_.Remove(entry.connection.get());
    transfers_.Remove(entry.connection.get());
    replication_.Remove(entry.connection.get());
    clock_.Release(entry.connection.get(), "the controller has gone");
    if (started_job_) UpdateMirroredSeq();
    if (entry.role == Member::Role::kLauncher) HandleEvent(LauncherDisconnected{id});
    if (entry.role == Member::Role::kController) HandleEvent(ControllerDisconnected{});
    if (!ended_ || !connections_.empty() || end_timer_ == 0) return;
    loop_->Cancel(end_timer_);
    end_timer_ = loop_->After(Duration::zero(), [this] { Leave(); });
  }

  Connection* ConnectionOf(MemberId id) {
    const auto found = connections_.find(id);
    return found == connections_.end() ? nullptr : found->second.connection.get();
  }

  // ---- Messages ----

  // An attempt's end counts once its last lines are stored or given up.
  void ReleaseEnd(const LogKey& key) {
    publisher_.LogEnded(key);
    if (const auto held = held_ends_.extract(key); !held.empty()) HandleEvent(held.mapped());
  }

  Status FromLauncher(MemberId id, const std::string& type, const json::object& message) {
    const auto task = core_.TaskOf(id);
    if (type == "heartbeat") {
      HandleEvent(ParseHeartbeat(id, message));
      if (task && message.if_contains("rss_bytes") != nullptr) PublishUsage(*task, message);
    } else if (type == "ended") {
      TRY_ASSIGN(EndedMessage ended, EndedFromJson(message));
      const LogKey key = task ? LogKeyOf(core_, *task, ended.attempt) : LogKey();
      if (task && !ended.outputs_lost.empty())
        Note("outputs of " + core_.NameOf(*task) + " are lost: " + ended.outputs_lost);
      held_ends_[key] = ProgramEnded{id,
                                     ended.attempt,
                                     std::move(ended.end),
                                     std::move(ended.last_line),
                                     ended.log_rule,
                                     std::move(ended.port_conflict),
                                     std::move(ended.interrupted)};
      // Its log bytes came before it, on the same connection.
      if (!task || task_logs_.Finish(key)) ReleaseEnd(key);
    } else if (type == "log_grew") {
      return LogGrew(id, message);
    } else if (type == "report") {
      if (task) return Report(id, *task, message);
    } else {
      TRY_ASSIGN(const Event event, ParseLauncherEvent(id, type, message));
      HandleEvent(event);
    }
    return Status::Ok();
  }

  Status Report(MemberId id, int task, const json::object& message) {
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    const json::value* body = message.if_contains("body");
    if (body == nullptr || !body->is_object()) return InvalidArgument("field 'body' is missing");
    for (const auto& [name, value] : body->get_object()) {
      if (!value.is_object()) continue;
      if (name == "result") {
        TRY_ASSIGN(const int64_t number, GetInt(message, "number"));
        HandleEvent(ProgramResult{id, static_cast<int>(attempt), static_cast<int>(number),
                                  value.get_object()});
        continue;
      }
      JobEvent event = EventOfTask(core_, task, static_cast<int>(attempt));
      event.type = name == "progress" ? JobEvent::Type::kProgress : JobEvent::Type::kProgram;
      event.body = value.get_object();
      publisher_.PublishTransient(event);
    }
    return Status::Ok();
  }

  void PublishUsage(int task, const json::object& message) {
    JobEvent event = EventOfTask(core_, task, core_.attempt_of(task));
    event.type = JobEvent::Type::kUsage;
    event.rss_bytes = GetIntOr(message, "rss_bytes", 0);
    event.cpu_seconds = GetDoubleOr(message, "cpu_seconds", 0);
    publisher_.PublishTransient(event);
  }

  Status FromController(Connection* connection, const std::string& type,
                        const json::object& message) {
    if (transfers_.Serves(connection)) return transfers_.Received(connection, type, message);
    replication_.OnMirrorActivity(connection, RealClock::Get()->Now());
    if (type == "heartbeat") return Status::Ok();
    if (options_.no_shared_filesystem && type == "journal_kept") {
      TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
      SetMirroredBytes(connection, bytes);
      return Status::Ok();
    }
    if (options_.no_shared_filesystem && type == "log_kept") return HandleLogMirrored(message);
    if (type == "held") return clock_.HandleHold(connection, message);
    if (type == "command") clock_.IgnorePauses();
    TRY_ASSIGN(const Event event, ParseControllerEvent(type, message));
    HandleEvent(event);
    return Status::Ok();
  }

  // ---- Logs ----

  // The launcher's own task counts, not the names in the frame.
  Status StoreLog(MemberId id, std::string_view bytes) {
    TRY_ASSIGN(const LogFrame frame, DecodeLogFrame(bytes));
    TRY_ASSIGN(const LogKey key, StartedLog(core_, id, frame.key.attempt));
    publisher_.LogGrew(key, task_logs_.Store(key, frame.offset, frame.bytes));
    if (task_logs_.AckDue(key)) AckLog(id, key);
    return Status::Ok();
  }

  // The launcher has written the log file itself.
  Status LogGrew(MemberId id, const json::object& message) {
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
    TRY_ASSIGN(const LogKey key, StartedLog(core_, id, attempt));
    const int64_t there = task_logs_.Written(key, bytes);
    if (there > 0) publisher_.LogGrew(key, there);
    return Status::Ok();
  }

  // A controller has mirrored a log up to here; until then the launcher keeps it.
  Status HandleLogMirrored(const json::object& message) {
    TRY_ASSIGN(const LogKey key, ParseAttempt(core_, message));
    TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
    task_logs_.OnMirrored(key, bytes);
    if (task_logs_.AckDue(key)) AckLog(core_.MemberOf(*core_.Find(key.role, key.index)), key);
    return Status::Ok();
  }

  void AckLog(MemberId id, const LogKey& key) {
    const int64_t bytes = task_logs_.Ack(key);
    if (Connection* connection = ConnectionOf(id)) {
      connection->Send("log_ack", {{"attempt", key.attempt}, {"bytes", bytes}});
    }
  }

  // ---- Core ----
  template <typename Any>
  void HandleEvent(Any event) {
    if (ended_ || !started_job_) return;
    ExecuteActions(core_.Handle(event, clock_.Now()));
  }

  void ExecuteActions(const std::vector<Action>& actions) {
    gate_->Execute(actions);
    ArmTick();
  }

  void ArmTick() {
    const auto next = core_.NextDeadline();
    if (ended_ || next == armed_) return;
    loop_->Cancel(std::exchange(tick_timer_, 0));
    armed_ = next;
    if (!next) return;
    tick_timer_ = loop_->After(std::max(*next - clock_.Now(), Millis(0)) + Millis(1), [this] {
      tick_timer_ = 0;
      armed_.reset();
      HandleEvent(Tick{});
      if (tick_timer_ == 0) ArmTick();
    });
  }

  void Perform(const Action& action) {
    Connection* connection = action.member != 0 ? ConnectionOf(action.member) : nullptr;
    switch (action.kind) {
      case Action::Kind::kRecord:
        return;
      case Action::Kind::kNote:
        return Note(action.text);
      case Action::Kind::kWriteVerdict:
        return WriteVerdict();
      case Action::Kind::kExit:
        return End(Status::Ok());
      case Action::Kind::kDescribe:
        return SendDescription(action, connection);
      case Action::Kind::kStart:
        if (connection != nullptr) StartProgram(action, connection);
        return;
      default:
        if (connection != nullptr) SendLauncherCommand(core_, action, id_, connection);
    }
  }

  void SendDescription(const Action& action, Connection* connection) {
    if (action.member == 0) return broadcast_throttle_.Request(core_.task_count());
    if (connection != nullptr) connection->SendShared(description_cache_.frame(), false);
  }

  void BroadcastDescription() {
    for (auto& [id, entry] : connections_) {
      if (core_.TaskOf(id)) entry.connection->SendShared(description_cache_.frame(), false);
    }
  }

  void StartProgram(const Action& action, Connection* connection) {
    auto start =
        MakeStartMessage(core_, description_cache_.cluster(), action.task, action.attempt,
                         {id_, options_.job_dir, options_.program, options_.no_shared_filesystem});
    if (!start.ok()) {
      loop_->Post([this, alive = alive_, task = action.task, why = start.status().message()] {
        if (*alive)
          HandleEvent(LauncherRefused{core_.role_of(task).name, core_.tasks().index_of(task), why});
      });
      return;
    }
    start->log_directory_id = log_directory_id_;
    connection->SendShared(description_cache_.frame(), false);
    connection->Send("start", ToJson(*start));
  }

  void Note(const std::string& text) { publisher_.PublishTransient(NoteEvent(text)); }

  void ScheduleHeartbeat() {
    heartbeat_timer_ = loop_->After(kHeartbeat, [this] {
      clock_.ReportLostTime();
      static const auto beat = std::make_shared<const std::string>(Message("heartbeat"));
      for (auto& [id, entry] : connections_) {
        if (entry.role != Member::Role::kUnknown) entry.connection->SendShared(beat, true);
      }
      for (const LogKey& key : task_logs_.Unacked()) {
        const auto task = core_.Find(key.role, key.index);
        publisher_.LogGrew(key, task_logs_.size(key));
        if (task) AckLog(core_.MemberOf(*task), key);
      }
      const auto stuck = replication_.SilentMirrors(RealClock::Get()->Now());
      for (Connection* connection : stuck)
        connection->Close("the controller does not say that it keeps anything");
      ScheduleHeartbeat();
    });
  }

  // ---- The end ----

  void WriteVerdict() {
    const std::string text = ToPrettyText(VerdictToJson(*core_.verdict())) + "\n";
    // Not synced: the journal, which is synced, has the verdict too.
    const Status status =
        WriteFileAtomically(job::JobDir(options_.job_dir).verdict(), text, 0600, false);
    if (!status.ok()) Note("the verdict is in the journal alone: " + status.message());
  }

  void End(const Status& status) {
    if (std::exchange(ended_, true)) return;
    for (auto& [id, entry] : connections_) {
      entry.connection->Close(status.ok() ? "ended" : status.message());
    }
    if (gate_) gate_->Close();
    end_ = status;
    // Queued messages and the closing message are sent first.
    end_timer_ = loop_->After(connections_.empty() ? Duration::zero() : Duration(kCloseTimeout),
                              [this] { Leave(); });
  }

  // The owner may destroy this object in on_end.
  void Leave() {
    end_timer_ = 0;
    const auto on_end = on_end_;
    on_end(end_);
  }

  // Constant after construction.
  net::Loop* const loop_;
  const CoordinatorOptions options_;
  const std::string id_;
  const std::string token_;
  const int resumes_;
  const std::filesystem::path logs_dir_;
  const std::function<void(const Status&)> on_end_;
  JobClock clock_{kHeartbeat, [this](const std::string& text) { Note(text); },
                  [this] { HandleEvent(Tick{}); }};
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  WallTime started_;
  std::string log_directory_id_;  // DirectoryIdentity

  CoordinatorCore core_;
  std::unique_ptr<DurabilityGate> gate_;
  EventPublisher publisher_;
  Transfers transfers_;
  JournalReplication replication_;
  TaskLogs task_logs_;
  std::map<LogKey, Event> held_ends_;
  std::map<MemberId, Member> connections_;
  MemberId next_member_ = 1;
  LeaderEpoch leader_;
  std::unique_ptr<net::WebSocketServer> server_;

  bool started_job_ = false;
  bool restored_ = false;  // from an earlier coordinator's journal
  bool ended_ = false;
  Status end_;
  ClusterDescriptionCache description_cache_{&core_};
  BroadcastThrottle broadcast_throttle_{loop_, [this] { BroadcastDescription(); }};
  std::optional<Millis> armed_;
  net::Loop::Id tick_timer_ = 0;
  net::Loop::Id heartbeat_timer_ = 0;
  net::Loop::Id wait_timer_ = 0;
  net::Loop::Id end_timer_ = 0;
};

}  // namespace

Result<std::unique_ptr<Coordinator>> Coordinator::Start(net::Loop* loop, CoordinatorOptions options,
                                                        std::function<void(const Status&)> on_end) {
  TRY_ASSIGN(JobFiles files, ReadJobFiles(options.job_dir));
  const bool keep = files.job.on_controller_loss == job::OnControllerLoss::kKeep;
  // A controller that sees the directory finds the verdict in a file.
  options.limits.holds_verdict = options.no_shared_filesystem;
  if (options.no_shared_filesystem) options.limits.linger = std::chrono::minutes(keep ? 60 : 10);
  auto coordinator = std::make_unique<SocketCoordinator>(loop, std::move(options), std::move(files),
                                                         std::move(on_end));
  TRY(coordinator->Open());
  return std::unique_ptr<Coordinator>(std::move(coordinator));
}

}  // namespace shoal::rendezvous
