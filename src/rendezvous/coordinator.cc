#include "rendezvous/coordinator.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "net/websocket.h"
#include "rendezvous/apart.h"
#include "rendezvous/description.h"
#include "rendezvous/events.h"
#include "rendezvous/feed.h"
#include "rendezvous/job_files.h"
#include "rendezvous/job_time.h"
#include "rendezvous/ledger.h"
#include "rendezvous/link.h"
#include "rendezvous/orders.h"
#include "rendezvous/peer.h"
#include "rendezvous/protocol.h"
#include "rendezvous/task_logs.h"
#include "rendezvous/transfers.h"

namespace shoal::rendezvous {
namespace {

constexpr auto kHeartbeat = std::chrono::seconds(1);
constexpr auto kLastWords = std::chrono::seconds(1);  // to whoever is connected at the end

// One connection and what it turned out to be.
struct Connection {
  std::unique_ptr<Peer> peer;
  enum class Role { kUnknown, kLauncher, kController, kObserver } role = Role::kUnknown;
};

class Shell final : public Coordinator {
 public:
  Shell(net::Loop* loop, CoordinatorOptions options, JobFiles files,
        std::function<void(const Status&)> on_end)
      : loop_(loop),
        options_(std::move(options)),
        id_(std::move(files.id)),
        token_(std::move(files.token)),
        resumes_(files.resumes),
        logs_dir_(std::filesystem::path(options_.job_dir) / "logs"),
        on_end_(std::move(on_end)),
        core_(std::move(files.job), options_.limits),
        feed_(logs_dir_),
        transfers_(options_.job_dir, id_, options_.apart,
                   [this](const std::string& text) { Note(text); }),
        apart_(std::filesystem::path(options_.job_dir) / "journal"),
        task_logs_(logs_dir_, [this](const LogKey& key, const Status& why) {
          Note("log lines of " + key.role + " " + std::to_string(key.index) +
               " are lost: " + why.message());
        }) {}

  ~Shell() override {
    *alive_ = false;
    for (const net::Loop::Id timer : {tick_timer_, heartbeat_timer_, wait_timer_, end_timer_})
      loop_->Cancel(timer);
  }

  Status Open() {
    TRY(MakeDirectories(logs_dir_, 0700));
    TRY_ASSIGN(logs_at_, LogPlace(logs_dir_));
    started_ = RealClock::Get()->Wall();
    if (!core_.job().files.empty()) transfers_.ExpectFiles();
    const bool waits = options_.apart && !apart_.MayBegin(options_.first_life && resumes_ == 0);
    if (!waits) TRY(OpenLedger());
    TRY(Listen());
    waits ? WaitForController() : Begin();
    BeatLater();
    return Status::Ok();
  }

  uint16_t port() const override { return server_->port(); }
  int64_t syncs() const override { return ledger_ ? ledger_->syncs() : 0; }
  const CoordinatorCore& core() const override { return core_; }
  void Stop(const std::string& reason) override {
    begun_ ? Feed(Command{StopMode::kStop, reason}) : End(Unavailable(reason));
  }
  void Suspend(const std::string& reason) override { Feed(rendezvous::Suspend{reason}); }
  void AwaitController() override { Feed(ControllerLives{}); }

 private:
  // ---- Opening ----

  LedgerCallbacks LedgerCalls() {
    LedgerCallbacks calls;
    calls.on_fact = [this](const Fact& fact) {
      const auto event = EventOf(fact, core_);
      const int64_t length = options_.apart ? ledger_->journal_bytes() : 0;
      if (options_.apart) apart_.Recorded(fact.seq, length);
      feed_.Add(fact.seq, event ? &*event : nullptr, length);
    };
    calls.perform = [this](const Action& action) { Perform(action); };
    calls.release = [this](int64_t seq) { feed_.Release(seq); };
    calls.also = [this](std::vector<int>* fds) { return task_logs_.TakeFinished(fds); };
    calls.on_waiting = [this](const Status& why) { Note("the job waits: " + why.message()); };
    calls.on_failed = [this](const Status& why) { End(why); };
    return calls;
  }

  Status OpenLedger() {
    TRY_ASSIGN(Ledger::Opened opened,
               Ledger::Open(loop_, options_.job_dir, options_.commit_delay, LedgerCalls()));
    ledger_ = std::move(opened.ledger);
    goes_on_ = !opened.facts.empty();
    if (options_.apart && goes_on_)
      apart_.Recorded(opened.facts.back().seq, ledger_->journal_bytes());
    return Restore(opened.facts);
  }

  void Begin() {
    begun_ = true;
    Do(core_.Begin(time_.Now(), resumes_));
    // Who goes on from a journal: what it holds is synced once, before anybody is told of it.
    if (goes_on_) ledger_->CommitNow();
  }

  // Apart, nothing begins before its controller has come.
  void WaitForController() {
    wait_timer_ = loop_->After(core_.job().limits.gather, [this] {
      End(Unavailable("the controller, which keeps what was decided so far, did not come within " +
                      FormatDuration(core_.job().limits.gather)));
    });
  }

  void Early(MemberId id, const json::object& hello) {
    Connection& connection = connections_[id];
    connection.role = Connection::Role::kObserver;
    TakeEarly(id, apart_.Hello(connection.peer.get(), id, hello));
  }

  void TakeEarly(MemberId id, const Result<bool>& begins) {
    if (!begins.ok()) return Close(id, begins.status().message());
    if (*begins) BeginLate();
  }

  void BeginLate() {
    loop_->Cancel(std::exchange(wait_timer_, 0));
    if (const Status opened = OpenLedger(); !opened.ok()) return End(opened);
    Begin();
    if (goes_on_) Note("the coordinator goes on from what its controller has kept");
    for (const auto& [id, type, message] : apart_.TakeEarly()) {
      if (!connections_.contains(id)) continue;
      type.empty() ? Proved(id, message) : Heard(id, type, message);
    }
  }

  // What is performed after a fact waits for who keeps it.
  void Keeps(Peer* peer, int64_t journal_bytes) {
    if (auto fits = apart_.Keeps(peer, journal_bytes, RealClock::Get()->Now()); !fits.ok())
      return End(fits);
    LookWhoKeeps();
  }

  void LookWhoKeeps() {
    const auto kept = apart_.kept();
    task_logs_.SetKept(kept.has_value());
    ledger_->Keep(kept);
  }

  Status Restore(const std::vector<Fact>& facts) {
    TRY(core_.Restore(facts).With(options_.job_dir + "/journal"));
    if (facts.empty()) return Status::Ok();
    // The job's time goes on from where the journal stands.
    time_.GoOnFrom(facts.back().at);
    // What was before the job was resumed has been told: of it only how large roles are to be.
    const bool now = resumes_ > 0 && core_.job_state() == job::JobState::kSuspended;
    const int64_t resumed = now ? facts.back().seq : ResumedAfter(facts);
    if (options_.apart) feed_.Add(facts.front().seq, nullptr, ledger_->journal_bytes());
    RestoreFeed(facts, resumed, core_, logs_dir_, &feed_);
    return Status::Ok();
  }

  Status Listen() {
    uint16_t port = options_.port;
    if (port == 0) {
      auto earlier = ReadCoordinatorFile(options_.job_dir);
      if (earlier.ok()) port = earlier->port;
    }
    const auto listen = [this](uint16_t at) {
      net::ServerOptions server;
      server.host = options_.host;
      server.port = at;
      server.path = kPath;
      server.connections = static_cast<size_t>(core_.task_count()) * 2 + 256;
      server.limits.message_bytes = kMaxMessageUp;
      return net::WebSocketServer::Listen(loop_, std::move(server),
                                          [this](auto socket) { Accept(std::move(socket)); });
    };
    auto server = listen(port);
    if (!server.ok() && port != 0 && options_.port == 0) server = listen(0);
    if (!server.ok()) return server.status();
    server_ = std::move(server).value();
    return WriteCoordinatorFile(options_.job_dir, {options_.host, server_->port()}, started_);
  }

  // ---- Connections ----

  void Accept(std::unique_ptr<net::WebSocket> socket) {
    const MemberId id = next_member_++;
    Peer::Callbacks calls;
    calls.on_proved = [this, id](const json::object& hello) { Proved(id, hello); };
    calls.on_message = [this, id](const std::string& type, const json::object& message) {
      Heard(id, type, message);
    };
    calls.on_binary = [this, id](std::string_view frame) {
      const Status status = Binary(id, frame);
      if (!status.ok()) Close(id, status.message());
    };
    calls.on_gone = [this, id] { Gone(id); };
    connections_[id].peer = Peer::Greet(loop_, std::move(socket), token_, std::move(calls));
  }

  void Heard(MemberId id, const std::string& type, const json::object& message) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const bool launcher = found->second.role == Connection::Role::kLauncher;
    if (!begun_) return TakeEarly(id, apart_.Word(found->second.peer.get(), id, type, message));
    const Status status = launcher ? FromLauncher(id, type, message)
                                   : FromController(found->second.peer.get(), type, message);
    if (!status.ok()) Close(id, "bad message '" + CleanText(type, 40) + "': " + status.message());
  }

  Status Binary(MemberId id, std::string_view frame) {
    Peer* const peer = PeerOf(id);
    if (!begun_) return apart_.Took(peer, frame);
    return transfers_.Serves(peer) ? transfers_.Received(peer, frame) : StoreLog(id, frame);
  }

  void Close(MemberId id, const std::string& why) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    LogWarning("closing the connection from {}: {}", found->second.peer->address(), why);
    found->second.peer->Close(why);
  }

  void Proved(MemberId id, const json::object& hello) {
    if (!begun_) return Early(id, hello);
    Connection& connection = connections_[id];
    const std::string kind = GetStringOr(hello, "kind", "");
    if (kind == "task") {
      auto task = TaskHelloFromJson(hello);
      if (!task.ok()) return Close(id, task.status().message());
      connection.role = Connection::Role::kLauncher;
      Feed(Joined{id, task->role, task->index, task->incarnation, task->instance, task->generation,
                  task->last_attempt, task->has_program, task->node});
      return;
    }
    connection.role =
        kind == "controller" ? Connection::Role::kController : Connection::Role::kObserver;
    const Status status = Serve(connection.peer.get(), kind, hello);
    if (!status.ok()) return Close(id, status.message());
    if (kind != "controller") return;
    if (options_.apart && hello.contains("journal"))
      Keeps(connection.peer.get(), GetIntOr(hello, "journal", 0));
    Feed(ControllerCame{});
  }

  Status Serve(Peer* peer, const std::string& kind, const json::object& hello) {
    if (kind == "outputs") {
      TRY_ASSIGN(const LogKey key, AttemptOf(hello));
      return transfers_.Add(peer, hello, key);
    }
    if (transfers_.Knows(kind)) return transfers_.Add(peer, hello, {});
    if (kind != "controller" && kind != "observer") return InvalidArgument("unknown kind");
    return feed_.Subscribe(peer, hello);
  }

  Result<LogKey> AttemptOf(const json::object& message) const {
    TRY_ASSIGN(const int64_t index, GetInt(message, "index"));
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    const auto task = core_.Find(GetStringOr(message, "role", ""), static_cast<int>(index));
    if (!task || attempt < 0 || attempt > core_.attempt_of(*task))
      return InvalidArgument("an attempt that was never started");
    return KeyOf(*task, static_cast<int>(attempt));
  }

  void Gone(MemberId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const Connection connection = std::move(found->second);
    connections_.erase(found);
    feed_.Remove(connection.peer.get());
    transfers_.Remove(connection.peer.get());
    apart_.Remove(connection.peer.get());
    time_.Release(connection.peer.get(), "the controller has gone");
    if (begun_) LookWhoKeeps();
    if (connection.role == Connection::Role::kLauncher) Feed(Left{id});
    if (connection.role == Connection::Role::kController) Feed(ControllerWent{});
    if (!ended_ || !connections_.empty() || end_timer_ == 0) return;
    loop_->Cancel(end_timer_);
    end_timer_ = loop_->After(Duration::zero(), [this] { Leave(); });
  }

  Peer* PeerOf(MemberId id) {
    const auto found = connections_.find(id);
    return found == connections_.end() ? nullptr : found->second.peer.get();
  }

  // ---- Messages ----

  Status FromLauncher(MemberId id, const std::string& type, const json::object& message) {
    const auto task = core_.TaskOf(id);
    if (type == "heartbeat") {
      Feed(HeartbeatOf(id, message));
      if (task && message.if_contains("rss_bytes") != nullptr) TellUsage(*task, message);
    } else if (type == "ended") {
      TRY_ASSIGN(EndedMessage ended, EndedFromJson(message));
      if (task) {
        // Its bytes came before it, on the same connection.
        feed_.LogEnded(KeyOf(*task, ended.attempt));
        task_logs_.Finish(KeyOf(*task, ended.attempt));
        if (!ended.outputs_lost.empty())
          Note("outputs of " + core_.NameOf(*task) + " are lost: " + ended.outputs_lost);
      }
      Feed(ProgramEnded{id, ended.attempt, std::move(ended.end), std::move(ended.last_line),
                        ended.log_rule, std::move(ended.stolen), std::move(ended.interrupted)});
    } else if (type == "log_grew") {
      return LogGrew(id, message);
    } else if (type == "report") {
      if (task) return Report(id, *task, message);
    } else {
      TRY_ASSIGN(const Event event, LauncherEvent(id, type, message));
      Feed(event);
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
        Feed(ProgramResult{id, static_cast<int>(attempt), static_cast<int>(number),
                           value.get_object()});
        continue;
      }
      JobEvent event = EventOfTask(core_, task, static_cast<int>(attempt));
      event.type = name == "progress" ? JobEvent::Type::kProgress : JobEvent::Type::kProgram;
      event.body = value.get_object();
      feed_.TellNow(event);
    }
    return Status::Ok();
  }

  void TellUsage(int task, const json::object& message) {
    JobEvent event = EventOfTask(core_, task, core_.attempt_of(task));
    event.type = JobEvent::Type::kUsage;
    event.rss_bytes = GetIntOr(message, "rss_bytes", 0);
    event.cpu_seconds = GetDoubleOr(message, "cpu_seconds", 0);
    feed_.TellNow(event);
  }

  Status FromController(Peer* peer, const std::string& type, const json::object& message) {
    if (transfers_.Serves(peer)) return transfers_.Received(peer, type, message);
    apart_.Alive(peer, RealClock::Get()->Now());
    if (type == "heartbeat") return Status::Ok();
    if (options_.apart && type == "journal_kept") {
      TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
      Keeps(peer, bytes);
      return Status::Ok();
    }
    if (options_.apart && type == "log_kept") return LogKept(message);
    if (type == "held") return time_.Held(peer, message);
    if (type == "command") time_.EndIsWanted();
    TRY_ASSIGN(const Event event, ControllerEvent(type, message));
    Feed(event);
    return Status::Ok();
  }

  // ---- Logs ----

  LogKey KeyOf(int task, int attempt) const {
    return {core_.role_of(task).name, core_.index_of(task), attempt};
  }

  // The launcher's own place and name count, not what the frame says.
  Status StoreLog(MemberId id, std::string_view bytes) {
    TRY_ASSIGN(const LogFrame frame, DecodeLogFrame(bytes));
    TRY_ASSIGN(const LogKey key, StartedLog(id, frame.key.attempt));
    feed_.LogGrew(key, task_logs_.Store(key, frame.offset, frame.bytes));
    if (task_logs_.AckDue(key)) AckLog(id, key);
    return Status::Ok();
  }

  // It has written them itself, where this coordinator would have.
  Status LogGrew(MemberId id, const json::object& message) {
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
    TRY_ASSIGN(const LogKey key, StartedLog(id, attempt));
    const int64_t there = task_logs_.Written(key, bytes);
    if (there > 0) feed_.LogGrew(key, there);
    return Status::Ok();
  }

  Result<LogKey> StartedLog(MemberId id, int64_t attempt) const {
    const auto task = core_.TaskOf(id);
    if (!task) return FailedPrecondition("log lines came before the welcome");
    if (attempt < 0 || attempt > core_.attempt_of(*task)) {
      return InvalidArgument("log lines of an attempt that was never started");
    }
    return KeyOf(*task, static_cast<int>(attempt));
  }

  // A controller has stored a log up to here: until then the launcher keeps it.
  Status LogKept(const json::object& message) {
    TRY_ASSIGN(const LogKey key, AttemptOf(message));
    TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
    task_logs_.Kept(key, bytes);
    if (task_logs_.AckDue(key)) AckLog(core_.MemberOf(*core_.Find(key.role, key.index)), key);
    return Status::Ok();
  }

  void AckLog(MemberId id, const LogKey& key) {
    const int64_t bytes = task_logs_.Ack(key);
    if (Peer* peer = PeerOf(id)) {
      peer->Send("log_ack", {{"attempt", key.attempt}, {"bytes", bytes}});
    }
  }

  // ---- Core ----
  template <typename Any>
  void Feed(Any event) {
    if (ended_ || !begun_) return;
    Do(core_.Handle(event, time_.Now()));
  }

  void Do(const std::vector<Action>& actions) {
    ledger_->Take(actions);
    ArmTick();
  }

  void ArmTick() {
    const auto next = core_.NextDeadline();
    if (ended_ || next == armed_) return;
    loop_->Cancel(std::exchange(tick_timer_, 0));
    armed_ = next;
    if (!next) return;
    tick_timer_ = loop_->After(std::max(*next - time_.Now(), Millis(0)) + Millis(1), [this] {
      tick_timer_ = 0;
      armed_.reset();
      Feed(Tick{});
      if (tick_timer_ == 0) ArmTick();
    });
  }

  void Perform(const Action& action) {
    Peer* peer = action.member != 0 ? PeerOf(action.member) : nullptr;
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
        return Describe(action, peer);
      case Action::Kind::kStart:
        if (peer != nullptr) StartProgram(action, peer);
        return;
      default:
        if (peer != nullptr) SendOrder(core_, action, id_, peer);
    }
  }

  void Describe(const Action& action, Peer* peer) {
    if (action.member == 0) return description_pace_.Ask(core_.task_count());
    if (peer != nullptr) peer->SendShared(describer_.frame(), false);
  }

  void DescribeToAll() {
    for (auto& [id, connection] : connections_) {
      if (core_.TaskOf(id)) connection.peer->SendShared(describer_.frame(), false);
    }
  }

  void StartProgram(const Action& action, Peer* peer) {
    auto start = StartOrder(core_, describer_.cluster(), action.task, action.attempt,
                            {id_, options_.job_dir, options_.program, options_.apart});
    if (!start.ok()) {
      loop_->Post([this, alive = alive_, task = action.task, why = start.status().message()] {
        if (*alive) Feed(LauncherRefused{core_.role_of(task).name, core_.index_of(task), why});
      });
      return;
    }
    start->logs_at = logs_at_;
    peer->SendShared(describer_.frame(), false);
    peer->Send("start", ToJson(*start));
  }

  void Note(const std::string& text) { feed_.TellNow(NoteEvent(text)); }

  void BeatLater() {
    heartbeat_timer_ = loop_->After(kHeartbeat, [this] {
      time_.Look();
      static const auto beat = std::make_shared<const std::string>(Message("heartbeat"));
      for (auto& [id, connection] : connections_) {
        if (connection.role != Connection::Role::kUnknown) connection.peer->SendShared(beat, true);
      }
      for (const LogKey& key : task_logs_.Unacked()) {
        const auto task = core_.Find(key.role, key.index);
        feed_.LogGrew(key, task_logs_.size(key));
        if (task) AckLog(core_.MemberOf(*task), key);
      }
      const auto stuck = apart_.Stuck(RealClock::Get()->Now());
      for (Peer* peer : stuck) peer->Close("the controller does not say that it keeps anything");
      BeatLater();
    });
  }

  // ---- The end ----

  void WriteVerdict() {
    const std::string text = ToPrettyText(VerdictToJson(*core_.verdict())) + "\n";
    // Not synced: the journal, which is, has it as well, and is read where there is no such file.
    const Status status =
        WriteFileAtomically(options_.job_dir + "/verdict.json", text, 0600, false);
    if (!status.ok()) Note("the verdict is in the journal alone: " + status.message());
  }

  void End(const Status& status) {
    if (std::exchange(ended_, true)) return;
    for (auto& [id, connection] : connections_) {
      connection.peer->Close(status.ok() ? "ended" : status.message());
    }
    if (ledger_) ledger_->Close();
    end_ = status;
    // The closing words, and what is queued before them, go out first.
    end_timer_ = loop_->After(connections_.empty() ? Duration::zero() : Duration(kLastWords),
                              [this] { Leave(); });
  }

  // The owner may destroy us in on_end.
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
  JobTime time_{kHeartbeat, [this](const std::string& text) { Note(text); },
                [this] { Feed(Tick{}); }};
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  WallTime started_;
  std::string logs_at_;  // LogPlace

  CoordinatorCore core_;
  std::unique_ptr<Ledger> ledger_;
  EventFeed feed_;
  Transfers transfers_;
  Apart apart_;
  TaskLogs task_logs_;
  std::map<MemberId, Connection> connections_;
  MemberId next_member_ = 1;
  std::unique_ptr<net::WebSocketServer> server_;

  bool begun_ = false;
  bool goes_on_ = false;  // from an earlier coordinator's journal
  bool ended_ = false;
  Status end_;
  Describer describer_{&core_};
  DescriptionPace description_pace_{loop_, [this] { DescribeToAll(); }};
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
  options.limits.holds_verdict = options.apart;  // else its controller finds it in a file
  if (options.apart) options.limits.linger = std::chrono::minutes(keep ? 60 : 10);
  auto shell =
      std::make_unique<Shell>(loop, std::move(options), std::move(files), std::move(on_end));
  TRY(shell->Open());
  return std::unique_ptr<Coordinator>(std::move(shell));
}

}  // namespace shoal::rendezvous
