#include "rendezvous/coordinator/coordinator.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "job/execution/job_dir.h"
#include "net/websocket.h"
#include "rendezvous/bootstrap/job_files.h"
#include "rendezvous/coordinator/action_performer.h"
#include "rendezvous/coordinator/coordinator_listener.h"
#include "rendezvous/coordinator/core_runner.h"
#include "rendezvous/coordinator/durability_gate.h"
#include "rendezvous/coordinator/event_publisher.h"
#include "rendezvous/coordinator/launcher_commands.h"
#include "rendezvous/coordinator/log_collector.h"
#include "rendezvous/coordinator/member_table.h"
#include "rendezvous/coordinator/record_events.h"
#include "rendezvous/journal/journal_replication.h"
#include "rendezvous/protocol/coordinator_connection.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/transfer/transfers.h"

namespace shoal::rendezvous {
namespace {

constexpr auto kHeartbeat = std::chrono::seconds(1);
constexpr auto kCloseTimeout = std::chrono::seconds(1);  // to send the closing messages

// Connects the parts of a coordinator: messages become events of the core, which the CoreRunner
// runs; its actions go through the DurabilityGate to the ActionPerformer; records and log lines go
// to the EventPublisher, the lines by way of the LogCollector.
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
        runner_(loop, std::move(files.job), options_.limits, kHeartbeat,
                [this](const std::string& text) { Note(text); }),
        publisher_(logs_dir_),
        transfers_(options_.job_dir, id_, options_.no_shared_filesystem,
                   [this](const std::string& text) { Note(text); }),
        replication_(job::JobDir(options_.job_dir).journal()),
        logs_(loop, logs_dir_, &core(), &members_, &publisher_,
              {[this](const std::string& text) { Note(text); },
               [this](const ProgramEnded& ended) { runner_.Handle(ended); }}),
        performer_(loop, &core(), &members_,
                   {id_, options_.job_dir, options_.program, options_.no_shared_filesystem},
                   {[this](const std::string& text) { Note(text); },
                    [this](const LauncherRefused& refused) { runner_.Handle(refused); },
                    [this] { End(Status::Ok()); }}) {}

  ~SocketCoordinator() override {
    for (const net::Loop::Id timer : {heartbeat_timer_, wait_timer_, end_timer_})
      loop_->Cancel(timer);
  }

  Status Open() {
    TRY(MakeDirectories(logs_dir_, 0700));
    TRY_ASSIGN(std::string identity, DirectoryIdentity(logs_dir_));
    performer_.SetLogDirectory(std::move(identity));
    started_ = RealClock::Get()->Wall();
    if (!core().job().files.empty()) transfers_.ExpectFiles();
    const bool first = options_.first_incarnation && resumes_ == 0;
    const bool waits = options_.no_shared_filesystem && !replication_.MayBegin(first);
    if (!waits) TRY(OpenJournal());
    TRY(Listen());
    waits ? WaitForController() : runner_.Begin(resumes_);
    ScheduleHeartbeat();
    return Status::Ok();
  }

  uint16_t port() const override { return server_->port(); }
  int64_t syncs() const override { return runner_.gate() ? runner_.gate()->syncs() : 0; }
  const CoordinatorCore& core() const override { return runner_.core(); }
  void Stop(const std::string& reason) override {
    runner_.begun() ? runner_.Handle(Command{StopMode::kStop, reason}) : End(Unavailable(reason));
  }
  void Suspend(const std::string& reason) override { runner_.Handle(rendezvous::Suspend{reason}); }
  void AwaitController() override { runner_.Handle(ControllerAlive{}); }

 private:
  // ---- Opening ----

  DurabilityGateCallbacks GateCallbacks() {
    DurabilityGateCallbacks calls;
    calls.on_record = [this](const JournalRecord& record) {
      const auto event = EventOf(record, core());
      const int64_t length = options_.no_shared_filesystem ? runner_.gate()->journal_bytes() : 0;
      if (options_.no_shared_filesystem) replication_.OnRecordAppended(record.seq, length);
      publisher_.Add(record.seq, event ? &*event : nullptr, length);
    };
    calls.perform = [this](const Action& action) { performer_.Perform(action); };
    calls.on_released = [this](int64_t seq) { publisher_.Release(seq); };
    calls.collect_descriptors = [this](auto* fds) { return logs_.TakeFinished(fds); };
    calls.on_waiting = [this](const Status& why) { Note("the job waits: " + why.message()); };
    calls.on_failed = [this](const Status& why) { End(why); };
    return calls;
  }

  Status OpenJournal() {
    TRY_ASSIGN(const std::vector<JournalRecord> records,
               runner_.OpenJournal(options_.job_dir, options_.commit_delay, GateCallbacks()));
    restored_ = !records.empty();
    if (!restored_) return Status::Ok();
    if (options_.no_shared_filesystem)
      replication_.OnRecordAppended(records.back().seq, runner_.gate()->journal_bytes());
    Republish(records);
    return Status::Ok();
  }

  // No-shared-filesystem mode: nothing begins before the controller has connected.
  void WaitForController() {
    wait_timer_ = loop_->After(core().job().limits.gather, [this] {
      End(Unavailable("the controller, which has the job's journal, did not connect within " +
                      FormatDuration(core().job().limits.gather)));
    });
  }

  void HelloBeforeBegin(MemberId id, const json::object& hello) {
    Member* const member = members_.Find(id);
    member->role = Member::Role::kObserver;
    TakeEarlyMessages(id, replication_.AddHello(member->connection.get(), id, hello));
  }

  void TakeEarlyMessages(MemberId id, const Result<bool>& begins) {
    if (!begins.ok()) return members_.Close(id, begins.status().message());
    if (*begins) BeginAfterRestore();
  }

  void BeginAfterRestore() {
    loop_->Cancel(std::exchange(wait_timer_, 0));
    if (const Status opened = OpenJournal(); !opened.ok()) return End(opened);
    runner_.Begin(resumes_);
    if (restored_) Note("the coordinator goes on from the journal that its controller mirrored");
    for (const auto& [id, type, message] : replication_.TakeEarlyMessages()) {
      if (members_.Find(id) == nullptr) continue;
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
    logs_.SetMirrored(kept.has_value());
    runner_.gate()->SetMirroredSeq(kept);
  }

  // Events before the resumption were published by an earlier coordinator: only role sizes are
  // repeated.
  void Republish(const std::vector<JournalRecord>& records) {
    const bool now = resumes_ > 0 && core().job_state() == job::JobState::kSuspended;
    const int64_t resumed = now ? records.back().seq : LastSeqBeforeResume(records);
    if (options_.no_shared_filesystem)
      publisher_.Add(records.front().seq, nullptr, runner_.gate()->journal_bytes());
    RestorePublisher(records, resumed, core(), logs_dir_, &publisher_);
  }

  Status Listen() {
    TRY_ASSIGN(server_, ListenForConnections(loop_, options_, core().task_count(),
                                             [this](auto socket) { Accept(std::move(socket)); }));
    return WriteCoordinatorFile(options_.job_dir, {options_.host, server_->port()}, started_);
  }

  // ---- Connections ----

  void Accept(std::unique_ptr<net::WebSocket> socket) {
    const MemberId id = members_.NextId();
    Connection::Callbacks calls;
    calls.on_proved = [this, id](const json::object& hello) { HandleHello(id, hello); };
    calls.on_message = [this, id](const std::string& type, const json::object& message) {
      HandleMessage(id, type, message);
    };
    calls.on_binary = [this, id](std::string_view frame) {
      const Status status = HandleBinary(id, frame);
      if (!status.ok()) members_.Close(id, status.message());
    };
    calls.on_gone = [this, id] { HandleDisconnect(id); };
    members_.Add(id, Connection::Greet(loop_, std::move(socket), token_, std::move(calls)));
  }

  void HandleMessage(MemberId id, const std::string& type, const json::object& message) {
    Member* const member = members_.Find(id);
    if (member == nullptr || member->superseded) return;
    Connection* const connection = member->connection.get();
    if (!runner_.begun())
      return TakeEarlyMessages(id, replication_.HandleMessage(connection, id, type, message));
    const bool launcher = member->role == Member::Role::kLauncher;
    const Status status =
        launcher ? FromLauncher(id, type, message) : FromController(connection, type, message);
    if (!status.ok())
      members_.Close(id, "bad message '" + CleanText(type, 40) + "': " + status.message());
  }

  Status HandleBinary(MemberId id, std::string_view frame) {
    Connection* const connection = members_.ConnectionOf(id);
    if (!runner_.begun()) return replication_.ReceiveJournal(connection, frame);
    return transfers_.Serves(connection) ? transfers_.Received(connection, frame)
                                         : logs_.Store(id, frame);
  }

  void HandleHello(MemberId id, const json::object& hello) {
    const std::string kind = GetStringOr(hello, "kind", "");
    if (kind == "controller" && !members_.AdmitController(id, hello)) return;
    if (!runner_.begun()) return HelloBeforeBegin(id, hello);
    Member* const member = members_.Find(id);
    if (kind == "task") {
      auto task = TaskHelloFromJson(hello);
      if (!task.ok()) return members_.Close(id, task.status().message());
      member->role = Member::Role::kLauncher;
      runner_.Handle(LauncherJoined{id, task->role, task->index, task->incarnation, task->instance,
                                    task->generation, task->last_attempt, task->has_program,
                                    task->node});
      return;
    }
    member->role = kind == "controller" ? Member::Role::kController : Member::Role::kObserver;
    const Status status = Serve(member->connection.get(), kind, hello);
    if (!status.ok()) return members_.Close(id, status.message());
    if (kind != "controller") return;
    if (options_.no_shared_filesystem && hello.contains("journal"))
      SetMirroredBytes(member->connection.get(), GetIntOr(hello, "journal", 0));
    runner_.Handle(ControllerConnected{});
  }

  Status Serve(Connection* connection, const std::string& kind, const json::object& hello) {
    if (kind == "outputs") {
      TRY_ASSIGN(const LogKey key, ParseAttempt(core(), hello));
      return transfers_.Add(connection, hello, key);
    }
    if (transfers_.IsTransfer(kind)) return transfers_.Add(connection, hello, {});
    if (kind != "controller" && kind != "observer") return InvalidArgument("unknown kind");
    return publisher_.Subscribe(connection, hello);
  }

  void HandleDisconnect(MemberId id) {
    const std::optional<Member> member = members_.Remove(id);
    if (!member) return;
    publisher_.Remove(member->connection.get());
    transfers_.Remove(member->connection.get());
    replication_.Remove(member->connection.get());
    runner_.clock().Release(member->connection.get(), "the controller has gone");
    if (runner_.begun()) UpdateMirroredSeq();
    if (member->role == Member::Role::kLauncher) runner_.Handle(LauncherDisconnected{id});
    if (member->role == Member::Role::kController) runner_.Handle(ControllerDisconnected{});
    if (!ended_ || !members_.empty() || end_timer_ == 0) return;
    loop_->Cancel(end_timer_);
    end_timer_ = loop_->After(Duration::zero(), [this] { Leave(); });
  }

  // ---- Messages ----

  Status FromLauncher(MemberId id, const std::string& type, const json::object& message) {
    const auto task = core().TaskOf(id);
    if (type == "heartbeat") {
      runner_.Handle(ParseHeartbeat(id, message));
      if (task && message.if_contains("rss_bytes") != nullptr) PublishUsage(*task, message);
    } else if (type == "ended") {
      TRY_ASSIGN(EndedMessage ended, EndedFromJson(message));
      if (task && !ended.outputs_lost.empty())
        Note("outputs of " + core().NameOf(*task) + " are lost: " + ended.outputs_lost);
      logs_.HoldEnd(task,
                    {id, ended.attempt, std::move(ended.end), std::move(ended.last_line),
                     ended.log_rule, std::move(ended.port_conflict), std::move(ended.interrupted)});
    } else if (type == "log_grew") {
      return logs_.HandleGrowth(id, message);
    } else if (type == "report") {
      if (task) return Report(id, *task, message);
    } else {
      TRY_ASSIGN(const Event event, ParseLauncherEvent(id, type, message));
      runner_.Handle(event);
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
        runner_.Handle(ProgramResult{id, static_cast<int>(attempt), static_cast<int>(number),
                                     value.get_object()});
        continue;
      }
      JobEvent event = EventOfTask(core(), task, static_cast<int>(attempt));
      event.type = name == "progress" ? JobEvent::Type::kProgress : JobEvent::Type::kProgram;
      event.body = value.get_object();
      publisher_.PublishTransient(event);
    }
    return Status::Ok();
  }

  void PublishUsage(int task, const json::object& message) {
    JobEvent event = EventOfTask(core(), task, core().attempt_of(task));
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
    if (options_.no_shared_filesystem && type == "log_kept") return logs_.HandleMirrored(message);
    if (type == "held") return runner_.clock().HandleHold(connection, message);
    if (type == "command") runner_.clock().IgnorePauses();
    TRY_ASSIGN(const Event event, ParseControllerEvent(type, message));
    runner_.Handle(event);
    return Status::Ok();
  }

  void Note(const std::string& text) { publisher_.PublishTransient(NoteEvent(text)); }

  void ScheduleHeartbeat() {
    heartbeat_timer_ = loop_->After(kHeartbeat, [this] {
      runner_.clock().ReportLostTime();
      static const auto beat = std::make_shared<const std::string>(Message("heartbeat"));
      members_.SendToAll(beat, true, [](MemberId, const Member& member) {
        return member.role != Member::Role::kUnknown;
      });
      logs_.AckAll();
      const auto stuck = replication_.SilentMirrors(RealClock::Get()->Now());
      for (Connection* connection : stuck)
        connection->Close("the controller does not say that it keeps anything");
      ScheduleHeartbeat();
    });
  }

  // ---- The end ----

  void End(const Status& status) {
    if (std::exchange(ended_, true)) return;
    members_.CloseAll(status.ok() ? "ended" : status.message());
    runner_.End();
    end_ = status;
    // Queued messages and the closing message are sent first.
    end_timer_ = loop_->After(members_.empty() ? Duration::zero() : Duration(kCloseTimeout),
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
  WallTime started_;

  CoreRunner runner_;
  EventPublisher publisher_;
  Transfers transfers_;
  JournalReplication replication_;
  MemberTable members_;
  LogCollector logs_;
  ActionPerformer performer_;
  std::unique_ptr<net::WebSocketServer> server_;

  bool restored_ = false;  // from an earlier coordinator's journal
  bool ended_ = false;
  Status end_;
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
