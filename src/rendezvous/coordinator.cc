#include "rendezvous/coordinator.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "net/websocket.h"
#include "rendezvous/description.h"
#include "rendezvous/events.h"
#include "rendezvous/feed.h"
#include "rendezvous/file_server.h"
#include "rendezvous/job_files.h"
#include "rendezvous/ledger.h"
#include "rendezvous/link.h"
#include "rendezvous/orders.h"
#include "rendezvous/output_store.h"
#include "rendezvous/peer.h"
#include "rendezvous/protocol.h"
#include "rendezvous/task_logs.h"

namespace shoal::rendezvous {
namespace {

constexpr auto kHeartbeat = std::chrono::seconds(1);
// Between two descriptions to all of n tasks: n² times as long, but not longer than:
constexpr double kDescribeNanos = 30;
constexpr Duration kLongestDescribeGap = std::chrono::seconds(3);
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
        files_(std::filesystem::path(options_.job_dir) / "files"),
        outputs_(std::filesystem::path(options_.job_dir) / "outputs"),
        task_logs_(logs_dir_, [this](const LogKey& key, const Status& why) {
          Note("log lines of " + key.role + " " + std::to_string(key.index) +
               " are lost: " + why.message());
        }) {}

  ~Shell() override {
    *alive_ = false;
    loop_->Cancel(tick_timer_);
    loop_->Cancel(heartbeat_timer_);
    loop_->Cancel(describe_timer_);
    loop_->Cancel(end_timer_);
  }

  Status Open() {
    TRY(MakeDirectories(logs_dir_, 0700));
    TRY_ASSIGN(logs_at_, LogPlace(logs_dir_));
    TRY_ASSIGN(Ledger::Opened opened,
               Ledger::Open(loop_, options_.job_dir, options_.commit_delay, LedgerCalls()));
    ledger_ = std::move(opened.ledger);
    TRY(Restore(opened.facts));
    TRY(Listen());
    Do(core_.Begin(Now(), resumes_));
    // Who goes on from a journal: what it holds is synced once, before anybody is told of it.
    if (!opened.facts.empty()) ledger_->CommitNow();
    BeatLater();
    return Status::Ok();
  }

  uint16_t port() const override { return server_->port(); }
  int64_t syncs() const override { return ledger_->syncs(); }
  const CoordinatorCore& core() const override { return core_; }
  void Stop(const std::string& reason) override { Feed(Command{StopMode::kStop, reason}); }
  void Suspend(const std::string& reason) override { Feed(rendezvous::Suspend{reason}); }

 private:
  // ---- Opening ----

  LedgerCallbacks LedgerCalls() {
    LedgerCallbacks calls;
    calls.on_fact = [this](const Fact& fact) {
      if (const auto event = EventOf(fact, core_)) feed_.Add(*event);
    };
    calls.perform = [this](const Action& action) { Perform(action); };
    calls.release = [this](int64_t seq) { feed_.Release(seq); };
    calls.also = [this](std::vector<int>* fds) { return task_logs_.TakeFinished(fds); };
    calls.on_failed = [this](const Status& why) { End(why); };
    return calls;
  }

  Status Restore(const std::vector<Fact>& facts) {
    started_ = RealClock::Get()->Wall();
    TRY(core_.Restore(facts).With(options_.job_dir + "/journal"));
    if (facts.empty()) return Status::Ok();
    // The job's time goes on from where the journal stands.
    base_ = facts.back().at;
    // What was before the job was resumed has been told: of it only how large roles are to be.
    const bool now = resumes_ > 0 && core_.job_state() == job::JobState::kSuspended;
    const int64_t resumed = now ? facts.back().seq : ResumedAfter(facts);
    std::set<LogKey> told;
    for (const Fact& fact : facts) {
      const bool before = fact.seq <= resumed && fact.kind == Fact::Kind::kStarted;
      if (before) told.insert(KeyOf(fact.task, fact.attempt));
    }
    for (const auto& entry : std::filesystem::directory_iterator(logs_dir_)) {
      const auto key = ParseLogFileName(entry.path().filename().string());
      if (!key || told.contains(*key)) continue;
      feed_.LogGrew(*key, static_cast<int64_t>(entry.file_size()));
    }
    for (const Fact& fact : facts) {
      if (fact.seq <= resumed && fact.kind != Fact::Kind::kScale) continue;
      if (const auto event = EventOf(fact, core_)) feed_.Add(*event);
      if (fact.kind == Fact::Kind::kEnded) feed_.LogEnded(KeyOf(fact.task, fact.attempt));
    }
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
    const json::object where{{"host", options_.host},
                             {"port", server_->port()},
                             {"pid", ::getpid()},
                             {"started", FormatWall(started_)}};
    return WriteFileAtomically(options_.job_dir + "/coordinator.json", ToText(where) + "\n", 0600,
                               false);
  }

  Millis Now() const {
    return base_ + std::chrono::duration_cast<Millis>(RealClock::Get()->Now() - opened_at_);
  }

  // ---- Connections ----

  void Accept(std::unique_ptr<net::WebSocket> socket) {
    const MemberId id = next_member_++;
    Peer::Callbacks calls;
    calls.on_proved = [this, id](const json::object& hello) { Proved(id, hello); };
    calls.on_message = [this, id](const std::string& type, const json::object& message) {
      const auto found = connections_.find(id);
      if (found == connections_.end()) return;
      const bool launcher = found->second.role == Connection::Role::kLauncher;
      const Status status = launcher ? FromLauncher(id, type, message)
                                     : FromController(found->second.peer.get(), type, message);
      if (!status.ok()) Close(id, "bad message '" + CleanText(type, 40) + "': " + status.message());
    };
    calls.on_binary = [this, id](std::string_view frame) {
      Peer* peer = PeerOf(id);
      const Status status =
          outputs_.Serves(peer) ? outputs_.Received(peer, frame) : StoreLog(id, frame);
      if (!status.ok()) Close(id, status.message());
    };
    calls.on_gone = [this, id] { Gone(id); };
    connections_[id].peer = Peer::Greet(loop_, std::move(socket), token_, std::move(calls));
  }

  void Close(MemberId id, const std::string& why) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    LogWarning("closing the connection from {}: {}", found->second.peer->address(), why);
    found->second.peer->Close(why);
  }

  void Proved(MemberId id, const json::object& hello) {
    Connection& connection = connections_[id];
    const std::string kind = GetStringOr(hello, "kind", "");
    if (kind == "task") {
      auto task = TaskHelloFromJson(hello);
      if (!task.ok()) return Close(id, task.status().message());
      connection.role = Connection::Role::kLauncher;
      Feed(Joined{id, task->role, task->index, task->incarnation, task->instance, task->generation,
                  task->last_attempt, task->has_program});
      return;
    }
    const bool outputs = kind == "outputs";
    const bool files = kind == "files";
    if (kind != "controller" && kind != "observer" && !files && !outputs)
      return Close(id, "unknown kind");
    connection.role =
        kind == "controller" ? Connection::Role::kController : Connection::Role::kObserver;
    if (files) return files_.Add(connection.peer.get());
    const Status status = outputs ? TakeOutputs(connection.peer.get(), hello)
                                  : feed_.Subscribe(connection.peer.get(), hello);
    if (!status.ok()) return Close(id, status.message());
    if (kind == "controller") Feed(ControllerCame{});
  }

  Status TakeOutputs(Peer* peer, const json::object& hello) {
    TRY_ASSIGN(const int64_t index, GetInt(hello, "index"));
    TRY_ASSIGN(const int64_t attempt, GetInt(hello, "attempt"));
    const auto task = core_.Find(GetStringOr(hello, "role", ""), static_cast<int>(index));
    if (!task || attempt < 0 || attempt > core_.attempt_of(*task))
      return InvalidArgument("outputs of an attempt that was never started");
    return outputs_.Add(peer, KeyOf(*task, static_cast<int>(attempt)), hello);
  }

  void Gone(MemberId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const Connection connection = std::move(found->second);
    connections_.erase(found);
    feed_.Remove(connection.peer.get());
    files_.Remove(connection.peer.get());
    outputs_.Remove(connection.peer.get());
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
    } else if (type == "leased") {
      TRY_ASSIGN(LeasedMessage leased, LeasedFromJson(message));
      Feed(PortsLeased{id, std::move(leased.host), std::move(leased.ports)});
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
                        ended.log_rule, std::move(ended.stolen)});
    } else if (type == "stolen") {
      TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
      Feed(PortStolen{id, static_cast<int>(attempt),
                      CleanText(GetStringOr(message, "text", ""), 300)});
    } else if (type == "evidence") {
      return TakeEvidence(id, message);
    } else if (type == "ready") {
      TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
      Feed(ProgramReady{id, static_cast<int>(attempt)});
    } else if (type == "log_grew") {
      return LogGrew(id, message);
    } else if (type == "report") {
      if (task) return Report(id, *task, message);
    } else {
      return InvalidArgument("this type of message is unknown");
    }
    return Status::Ok();
  }

  Status TakeEvidence(MemberId id, const json::object& message) {
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    const json::value* body = message.if_contains("body");
    if (body == nullptr || !body->is_object()) return InvalidArgument("field 'body' is missing");
    Feed(Evidence{id, static_cast<int>(attempt), StillOf(message), body->get_object()});
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
      JobEvent event = EventOfTask(task, static_cast<int>(attempt));
      event.type = name == "progress" ? JobEvent::Type::kProgress : JobEvent::Type::kProgram;
      event.body = value.get_object();
      feed_.TellNow(event);
    }
    return Status::Ok();
  }

  void TellUsage(int task, const json::object& message) {
    JobEvent event = EventOfTask(task, core_.attempt_of(task));
    event.type = JobEvent::Type::kUsage;
    event.rss_bytes = GetIntOr(message, "rss_bytes", 0);
    event.cpu_seconds = GetDoubleOr(message, "cpu_seconds", 0);
    feed_.TellNow(event);
  }

  Status FromController(Peer* peer, const std::string& type, const json::object& message) {
    if (files_.Serves(peer)) return files_.Received(peer, type, message);
    if (outputs_.Serves(peer)) return outputs_.Received(peer, type, message);
    if (type == "heartbeat") return Status::Ok();
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

  void AckLog(MemberId id, const LogKey& key) {
    const int64_t bytes = task_logs_.Ack(key);
    if (Peer* peer = PeerOf(id)) {
      peer->Send("log_ack", {{"attempt", key.attempt}, {"bytes", bytes}});
    }
  }

  // ---- Core ----

  template <typename Any>
  void Feed(Any event) {
    if (ended_) return;
    Do(core_.Handle(event, Now()));
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
    tick_timer_ = loop_->After(std::max(*next - Now(), Millis(0)) + Millis(1), [this] {
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
      default:
        if (peer != nullptr) Tell(action, peer);
    }
  }

  void Tell(const Action& action, Peer* peer) {
    switch (action.kind) {
      case Action::Kind::kWelcome:
        return peer->Send("welcome", WelcomeOrder(core_, action.task, action.lease, id_));
      case Action::Kind::kWait:
        return peer->Send("wait", {{"text", action.text}});
      case Action::Kind::kRefuse:
        peer->Send("refuse", {{"text", action.text}});
        return peer->Close(action.text);
      case Action::Kind::kStart:
        return StartProgram(action, peer);
      case Action::Kind::kDrain:
        return peer->Send("drain", {{"attempt", action.attempt},
                                    {"grace_ms", action.grace.count()},
                                    {"signal", action.signal},
                                    {"text", action.text}});
      case Action::Kind::kKill:
        return peer->Send(
            "kill",
            {{"attempt", action.attempt}, {"abandon", action.abandon}, {"text", action.text}});
      case Action::Kind::kInspect:
        return peer->Send("inspect", {{"attempt", action.attempt}});
      case Action::Kind::kAck:
        return peer->Send("ack", {{"attempt", action.attempt}});
      case Action::Kind::kRelease:
        return peer->Send("release", {});
      default:
        return;
    }
  }

  void Describe(const Action& action, Peer* peer) {
    if (action.member == 0) return DescribeToAll();
    if (peer != nullptr) peer->SendShared(describer_.frame(), false);
  }

  // When many tasks end one after the other, each is news to all of them: at most so often that
  // this coordinator spends no more than a part of its time on it.
  void DescribeToAll() {
    if (describe_timer_ != 0) return;
    const double tasks = core_.task_count();
    const auto gap = std::min<Duration>(
        std::chrono::nanoseconds(static_cast<int64_t>(tasks * tasks * kDescribeNanos)),
        kLongestDescribeGap);
    const TimePoint now = RealClock::Get()->Now();
    if (now >= described_at_ + gap) return DescribeNow();
    describe_timer_ = loop_->After(described_at_ + gap - now, [this] {
      describe_timer_ = 0;
      DescribeNow();
    });
  }

  void DescribeNow() {
    described_at_ = RealClock::Get()->Now();
    for (auto& [id, connection] : connections_) {
      if (core_.TaskOf(id)) connection.peer->SendShared(describer_.frame(), false);
    }
  }

  void StartProgram(const Action& action, Peer* peer) {
    auto start = StartOrder(core_, describer_.cluster(), action.task, action.attempt,
                            {id_, options_.job_dir, options_.program});
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

  JobEvent EventOfTask(int task, int attempt) const {
    JobEvent event;
    event.at = FormatWall(RealClock::Get()->Wall());
    event.role = core_.role_of(task).name;
    event.index = core_.index_of(task);
    event.attempt = attempt;
    return event;
  }

  void Note(const std::string& text) {
    JobEvent event;
    event.type = JobEvent::Type::kNote;
    event.at = FormatWall(RealClock::Get()->Wall());
    event.text = text;
    feed_.TellNow(event);
  }

  void BeatLater() {
    heartbeat_timer_ = loop_->After(kHeartbeat, [this] {
      static const auto beat = std::make_shared<const std::string>(Message("heartbeat"));
      for (auto& [id, connection] : connections_) {
        if (connection.role != Connection::Role::kUnknown) connection.peer->SendShared(beat, true);
      }
      for (const LogKey& key : task_logs_.Unacked()) {
        const auto task = core_.Find(key.role, key.index);
        if (task) AckLog(core_.MemberOf(*task), key);
      }
      BeatLater();
    });
  }

  // ---- The end ----

  void WriteVerdict() {
    const std::string text = ToPrettyText(VerdictToJson(*core_.verdict())) + "\n";
    // Not synced: the journal, which is, has it as well.
    const Status status =
        WriteFileAtomically(options_.job_dir + "/verdict.json", text, 0600, false);
    if (!status.ok()) End(status.With("the verdict"));
  }

  void End(const Status& status) {
    if (std::exchange(ended_, true)) return;
    for (auto& [id, connection] : connections_) {
      connection.peer->Close(status.ok() ? "ended" : status.message());
    }
    ledger_->Close();
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
  const TimePoint opened_at_ = RealClock::Get()->Now();
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  WallTime started_;
  Millis base_{0};
  std::string logs_at_;  // LogPlace

  CoordinatorCore core_;
  std::unique_ptr<Ledger> ledger_;
  EventFeed feed_;
  FileServer files_;
  OutputStore outputs_;
  TaskLogs task_logs_;
  std::map<MemberId, Connection> connections_;
  MemberId next_member_ = 1;
  std::unique_ptr<net::WebSocketServer> server_;

  bool ended_ = false;
  Status end_;
  Describer describer_{&core_};
  TimePoint described_at_;  // to all
  std::optional<Millis> armed_;
  net::Loop::Id tick_timer_ = 0;
  net::Loop::Id heartbeat_timer_ = 0;
  net::Loop::Id describe_timer_ = 0;
  net::Loop::Id end_timer_ = 0;
};

}  // namespace

Result<std::unique_ptr<Coordinator>> Coordinator::Start(net::Loop* loop, CoordinatorOptions options,
                                                        std::function<void(const Status&)> on_end) {
  TRY_ASSIGN(JobFiles files, ReadJobFiles(options.job_dir));
  auto shell =
      std::make_unique<Shell>(loop, std::move(options), std::move(files), std::move(on_end));
  TRY(shell->Open());
  return std::unique_ptr<Coordinator>(std::move(shell));
}

}  // namespace shoal::rendezvous
