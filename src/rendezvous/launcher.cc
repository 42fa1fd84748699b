#include "rendezvous/launcher.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "host/port_lease.h"
#include "job/state.h"
#include "net/address.h"
#include "rendezvous/job_files.h"
#include "rendezvous/launch_env.h"
#include "rendezvous/link.h"
#include "rendezvous/log_spool.h"
#include "rendezvous/port_watch.h"
#include "rendezvous/program.h"
#include "rendezvous/program_end.h"
#include "rendezvous/protocol.h"
#include "rendezvous/ready_check.h"
#include "rendezvous/task_output.h"

namespace shoal::rendezvous {
namespace {

constexpr int kNotDelivered = 77;
constexpr size_t kLinkHighWater = 1 << 20;
constexpr auto kSampleEvery = std::chrono::seconds(1);
constexpr auto kLastWords = std::chrono::seconds(2);  // to deliver an end after SIGTERM

class TaskLauncher final : public Launcher {
 public:
  TaskLauncher(net::Loop* loop, LauncherOptions options, std::string token,
               std::function<void(int)> on_end)
      : loop_(loop),
        options_(std::move(options)),
        token_(std::move(token)),
        on_end_(std::move(on_end)),
        role_(options_.role),
        index_(options_.index) {}

  ~TaskLauncher() override {
    loop_->Cancel(sample_timer_);
    loop_->Cancel(end_timer_);
  }

  void Open() {
    LinkOptions link;
    link.find = [dir = options_.job_dir] { return ReadCoordinatorFile(dir); };
    link.token = token_;
    link.give_up_after = options_.coordinator_timeout;
    LinkCallbacks calls;
    calls.hello = [this] { return Hello(); };
    calls.heartbeat = [this] { return Heartbeat(); };
    calls.on_up = [this] { unsent_reports_from_ = 0; };
    calls.on_message = [this](const std::string& type, const json::object& message) {
      const Status status = Received(type, message);
      if (!status.ok()) LogError("message '{}' of the coordinator: {}", type, status.message());
    };
    calls.on_drain = [this] { Pump(); };
    calls.on_down = [this](const Status& why) {
      LogWarning("lost the coordinator: {}", why.message());
      welcomed_ = false;
      spool_.Rewind();
      ready_told_ = stolen_told_ = false;
      for (Ended& one : ended_) one.sent = false;
    };
    calls.on_given_up = [this](const Status& why) { GivenUp(why); };
    link_ = Link::Start(loop_, std::move(link), std::move(calls));
  }

  void Stop() override {
    if (std::exchange(stopping_, true)) return;
    LogInfo("told to stop");
    if (program_) {
      program_->Drain(grace_);
    } else {
      LeaveSoon();
    }
  }

 private:
  struct Ended {
    EndedMessage message;
    bool sent = false;
  };

  // ---- The line ----

  json::object Hello() const {
    TaskHello hello;
    hello.role = role_;
    hello.index = index_;
    hello.incarnation = options_.incarnation;
    hello.instance = instance_;
    hello.pid = ::getpid();
    hello.generation = generation_;
    hello.last_attempt = attempt_;
    hello.has_program = program_ != nullptr || !ended_.empty();
    return ToJson(hello);
  }

  json::object Heartbeat() const {
    if (!program_) return {};
    return {{"attempt", attempt_},
            {"rss_bytes", usage_.memory_bytes},
            {"cpu_seconds", usage_.cpu_seconds}};
  }

  Status Received(const std::string& type, const json::object& message) {
    if (type == "welcome") return Welcomed(message);
    if (type == "describe") return Described(message);
    if (type == "start") return StartProgram(message);
    if (type == "drain" || type == "kill") return StopProgram(type, message);
    if (type == "log_ack") {
      TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
      TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
      spool_.Ack(static_cast<int>(attempt), bytes);
      if (program_ && spool_.bytes() < kSpoolLimit / 2) program_->Resume();
      return Status::Ok();
    }
    if (type == "ack") return Acked(message);
    if (type == "release") {
      released_ = true;
      MaybeLeave();
    } else if (type == "wait") {
      LogInfo("{}", GetStringOr(message, "text", ""));
    } else if (type == "refuse") {
      Refused(Aborted(GetStringOr(message, "text", "the coordinator refused this launcher")));
    }
    return Status::Ok();
  }

  Status Welcomed(const json::object& message) {
    TRY_ASSIGN(role_, GetString(message, "role"));
    TRY_ASSIGN(const int64_t index, GetInt(message, "index"));
    TRY_ASSIGN(job_id_, GetString(message, "job"));
    TRY_ASSIGN(const bool lease, GetBool(message, "lease"));
    index_ = static_cast<int>(index);
    SetLogName(role_ + "-" + std::to_string(index_));
    welcomed_ = true;
    if (lease) {
      const Status leased = LeasePorts(message);
      if (!leased.ok()) {
        Refused(leased);
        return leased;
      }
    }
    Pump();
    return Status::Ok();
  }

  Status LeasePorts(const json::object& message) {
    const json::value* ports = message.if_contains("ports");
    if (ports == nullptr || !ports->is_array()) return InvalidArgument("no 'ports'");
    leases_.clear();
    LeasedMessage leased;
    const auto ranges = host::LeaseRanges(host::EphemeralRange());
    for (const json::value& port : ports->get_array()) {
      if (!port.is_object()) return InvalidArgument("field 'ports': expected objects");
      TRY_ASSIGN(host::PortLease lease, host::PortLease::Take(ranges, [] { return RandomSeed(); }));
      leased.ports.push_back(lease.port());
      leases_.push_back({std::move(lease), GetBoolOr(port.get_object(), "plain", false)});
    }
    TRY_ASSIGN(leased.host, net::AdvertisedHost(link_->address().host));
    host_ = leased.host;
    link_->Send("leased", ToJson(leased));
    return Status::Ok();
  }

  Status Described(const json::object& message) {
    TRY_ASSIGN(generation_, GetInt(message, "generation"));
    const json::value* cluster = message.if_contains("cluster");
    if (cluster == nullptr || !cluster->is_object()) return InvalidArgument("no 'cluster'");
    cluster_ = ToText(*cluster);
    return program_ ? WriteClusterFile() : Status::Ok();
  }

  // What the coordinator has not stored is sent as the line has room; an attempt's end after its
  // last log line.
  void Pump() {
    if (!welcomed_ || !link_->up()) return;
    while (link_->queued_bytes() < kLinkHighWater) {
      const LogSpool::Chunk* chunk = spool_.Next();
      if (chunk == nullptr) break;
      link_->SendBinary(
          EncodeLogFrame({role_, index_, chunk->attempt}, chunk->offset, chunk->bytes));
    }
    SendResults();
    if (ready_ && !std::exchange(ready_told_, true)) {
      link_->Send("ready", {{"attempt", attempt_}});
    }
    if (program_ && !stolen_.empty() && !std::exchange(stolen_told_, true)) {
      link_->Send("stolen", {{"attempt", attempt_}, {"text", stolen_}});
    }
    for (Ended& one : ended_) {
      if (one.sent || !spool_.AllSent(one.message.attempt)) continue;
      one.sent = true;
      link_->Send("ended", ToJson(one.message));
    }
  }

  void SendResults() {
    for (; unsent_reports_from_ < results_.size(); ++unsent_reports_from_) {
      link_->Send("report", results_[unsent_reports_from_]);
    }
  }

  Status Acked(const json::object& message) {
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    spool_.AckAll(static_cast<int>(attempt));
    std::erase_if(ended_, [&](const Ended& one) { return one.message.attempt <= attempt; });
    if (stopping_ && !program_ && ended_.empty()) LeaveSoon();
    MaybeLeave();
    return Status::Ok();
  }

  // ---- The program ----

  std::string PathOf(const std::string& suffix) const {
    return options_.job_dir + "/scratch/" + role_ + "-" + std::to_string(index_) + suffix;
  }
  std::string ScratchDir() const { return PathOf("." + std::to_string(attempt_)); }
  std::string ClusterFile() const { return PathOf(".cluster.json"); }

  Status WriteClusterFile() const {
    return WriteFileAtomically(ClusterFile(), cluster_ + "\n", 0600, false);
  }

  Status StartProgram(const json::object& message) {
    TRY_ASSIGN(const StartMessage start, StartFromJson(message));
    if (start.attempt <= attempt_ || program_ || stopping_) return Status::Ok();
    attempt_ = start.attempt;
    memory_limit_ = start.memory_bytes;
    on_log_ = start.on_log;
    log_rule_ = -1;
    not_ready_.clear();
    stolen_.clear();
    ready_ = ready_told_ = false;
    processes_ = std::max(1, static_cast<int>(start.processes.size()));
    std::vector<std::string> watched = start.on_log;
    if (start.ready.by == job::ReadyBy::kLog) watched.push_back(start.ready.line);
    output_ = std::make_unique<TaskOutput>(processes_, std::move(watched));
    results_.clear();
    unsent_reports_from_ = 0;
    usage_ = {};
    const Status status = Spawn(start);
    if (!status.ok()) {
      RemoveScratch();
      program_.reset();
      Finish(CouldNotStart(status));
    }
    return Status::Ok();
  }

  Status Spawn(const StartMessage& start) {
    TRY(MakeDirectories(ScratchDir(), 0700));
    TRY(WriteClusterFile());
    ProgramSpec spec;
    spec.process.job_id = job_id_;
    spec.process.name = role_ + "-" + std::to_string(index_) + "." + std::to_string(attempt_);
    spec.process.argv = start.argv;
    spec.process.env = Environment(start, {});
    for (size_t i = 0; i < start.processes.size(); ++i) {
      auto env = Environment(start, start.processes[i]);
      if (i == 0) {
        spec.process.env = std::move(env);
      } else {
        spec.process.further.push_back({std::move(env)});
      }
    }
    spec.process.grace = std::chrono::milliseconds(start.grace_ms);
    spec.process.work_dir = start.work_dir;
    spec.process.resources.cpu = start.cpu;
    spec.process.resources.memory_bytes = start.memory_bytes;
    grace_ = std::chrono::milliseconds(start.grace_ms);
    for (auto& [lease, plain] : leases_) {
      if (plain) lease.Release();
    }
    ProgramCallbacks calls;
    calls.on_output = [this](int process, std::string_view bytes) {
      return Printed(process, bytes);
    };
    calls.on_report = [this](const json::object& report) { Reported(report); };
    calls.on_end = [this](const host::ProcessExit& exit) { ProgramEnded(exit); };
    TRY_ASSIGN(program_,
               Program::Start(loop_, std::move(spec), options_.isolation, std::move(calls)));
    if (start.ready.by != job::ReadyBy::kStart) CheckReady(start);
    WatchPorts();
    SampleLater();
    return Status::Ok();
  }

  void CheckReady(const StartMessage& start) {
    ReadyCheckSpec spec;
    spec.how = start.ready;
    spec.port = start.port;
    spec.hosts = {"127.0.0.1", "::1"};
    if (!host_.empty() && host_ != spec.hosts[0]) spec.hosts.push_back(host_);
    spec.env = Environment(start, {});
    spec.work_dir = start.work_dir;
    spec.job_id = job_id_;
    spec.name = role_ + "-" + std::to_string(index_) + "." + std::to_string(attempt_) + ".ready";
    spec.isolation = options_.isolation;
    const std::string within = FormatDuration(start.ready.timeout);
    ready_check_ = ReadyCheck::Start(
        loop_, std::move(spec), [this] { BeReady(); },
        [this, within](const std::string& why) {
          not_ready_ = "it was not ready within " + within + ": " + why;
          ready_check_.reset();
          if (program_) program_->Kill();
        });
  }

  std::vector<uint16_t> Ports() const {
    std::vector<uint16_t> ports;
    for (const auto& [lease, plain] : leases_) ports.push_back(lease.port());
    return ports;
  }

  void WatchPorts() {
    port_watch_.reset();
    if (leases_.empty()) return;
    port_watch_ = PortWatch::Start(
        loop_, Ports(), [this] { return program_ ? program_->Pids() : std::vector<pid_t>(); },
        [this](uint16_t port, const std::string& who) {
          stolen_ = "its port " + std::to_string(port) + " is taken: " + who;
          stolen_told_ = false;
          port_watch_.reset();
          Pump();
        });
  }

  void BeReady() {
    ready_check_.reset();
    ready_ = true;
    Pump();
  }

  // A line that the job waits for was printed.
  void Matched(int number) {
    if (number == static_cast<int>(on_log_.size())) {
      if (ready_check_) BeReady();
    } else if (log_rule_ < 0) {
      log_rule_ = number;
      LogInfo("a line of the program matches '{}'", on_log_[static_cast<size_t>(number)]);
      if (program_) program_->Drain(grace_);
    }
  }

  std::vector<std::string> Environment(
      const StartMessage& start,
      const std::vector<std::pair<std::string, std::string>>& process) const {
    return LaunchEnvironment(start, process,
                             {options_.job_dir, ScratchDir(), ClusterFile(), cluster_});
  }

  Status StopProgram(const std::string& how, const json::object& message) {
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    if (!program_ || attempt != attempt_) return Status::Ok();
    LogInfo("{}: {}", how, GetStringOr(message, "text", ""));
    if (how == "drain") {
      TRY_ASSIGN(const int64_t grace, GetInt(message, "grace_ms"));
      program_->Drain(std::chrono::milliseconds(grace));
    } else {
      program_->Kill();
    }
    return Status::Ok();
  }

  bool Printed(int process, std::string_view bytes) {
    Log(output_->Take(process, bytes));
    for (int match; (match = output_->TakeMatch()) >= 0;) Matched(match);
    Pump();
    return spool_.bytes() < kSpoolLimit;
  }

  void Log(std::string_view text) {
    if (text.empty()) return;
    spool_.Append(attempt_, text);
    Copy(text);
  }

  // To our own output, as far as its reader keeps up: the program never waits for that.
  void Copy(std::string_view bytes) const {
    constexpr size_t kAtomic = 4096;
    while (options_.copy_fd >= 0 && !bytes.empty()) {
      pollfd out{options_.copy_fd, POLLOUT, 0};
      if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return;
      const size_t take = std::min(bytes.size(), kAtomic);
      if (::write(options_.copy_fd, bytes.data(), take) != static_cast<ssize_t>(take)) return;
      bytes.remove_prefix(take);
    }
  }

  void Reported(const json::object& report) {
    json::object fields{{"attempt", attempt_}, {"body", report}};
    if (report.contains("result")) {
      fields["number"] = results_.size();
      results_.push_back(std::move(fields));
      Pump();
    } else if (welcomed_) {
      link_->Send("report", std::move(fields));
    }
  }

  void SampleLater() {
    loop_->Cancel(std::exchange(sample_timer_, 0));
    sample_timer_ = loop_->After(kSampleEvery, [this] {
      if (!program_) return;
      auto usage = program_->Sample();
      if (usage.ok()) usage_ = *usage;
      SampleLater();
    });
  }

  void ProgramEnded(const host::ProcessExit& exit) {
    // The Program is in the middle of its last callback.
    ending_ = std::move(program_);
    loop_->Post([this, alive = alive_] {
      if (*alive) ending_.reset();
    });
    ready_check_.reset();
    port_watch_.reset();
    RemoveScratch();
    Log(output_->Finish());
    for (int match; (match = output_->TakeMatch()) >= 0;) Matched(match);
    job::TaskEnd end = EndOf(exit, memory_limit_);
    if (!not_ready_.empty() && !end.ok()) end = Killed(SIGKILL, not_ready_);
    // Stopped for what it printed: that it ends well then says nothing.
    if (log_rule_ >= 0 && end.ok()) end = Killed(SIGTERM, "for a line that it printed");
    // It may have failed for it before anybody looked.
    if (stolen_.empty() && !end.ok()) stolen_ = TakenPort(Ports());
    if (processes_ > 1 && !end.ok()) end.process = exit.process;
    Finish(std::move(end), exit.process);
  }

  void RemoveScratch() const {
    std::error_code ignored;  // the engine removes the job's directory anyway
    std::filesystem::remove_all(ScratchDir(), ignored);
    std::filesystem::remove(ClusterFile(), ignored);
  }

  void Finish(job::TaskEnd end, int process = 0) {
    Ended ended;
    ended.message.attempt = attempt_;
    ended.message.end = std::move(end);
    ended.message.last_line = CleanText(output_->last_line(process), 200);
    ended.message.log_rule = log_rule_;
    ended.message.stolen = stolen_;
    ended.message.log_bytes = spool_.log_bytes(attempt_);
    ended_.push_back(std::move(ended));
    Pump();
    if (stopping_) LeaveSoon();
  }

  // ---- The end ----

  // The coordinator cannot be reached any more, or has ended without waiting for us.
  void GivenUp(const Status& why) {
    LogWarning("gave the coordinator up: {}", why.message());
    gone_ = true;
    stopping_ = true;
    if (program_) {
      program_->Drain(grace_);
    } else {
      LeaveSoon();
    }
  }

  void Refused(const Status& why) {
    LogError("{}", why.message());
    gone_ = true;
    stopping_ = true;
    if (program_) {
      program_->Kill();
    } else {
      LeaveSoon();
    }
  }

  void LeaveSoon() {
    const bool may_deliver = !gone_ && !ended_.empty();
    loop_->Cancel(std::exchange(end_timer_, 0));
    end_timer_ = loop_->After(may_deliver ? Duration(kLastWords) : Duration::zero(),
                              [this] { Leave(released_ ? 0 : kNotDelivered); });
  }

  void MaybeLeave() {
    if (!released_ || program_ || !ended_.empty()) return;
    loop_->Cancel(std::exchange(end_timer_, 0));
    end_timer_ = loop_->After(Duration::zero(), [this] { Leave(0); });
  }

  void Leave(int exit_code) {
    if (std::exchange(left_, true)) return;
    link_.reset();
    const auto on_end = on_end_;
    on_end(exit_code);
  }

  struct AliveFlag {
    std::shared_ptr<bool> flag = std::make_shared<bool>(true);
    ~AliveFlag() { *flag = false; }
  };

  // Constant after construction.
  net::Loop* const loop_;
  const LauncherOptions options_;
  const std::string token_;
  const std::function<void(int)> on_end_;
  const std::string instance_ = RandomHex(8);
  AliveFlag alive_owner_;
  const std::shared_ptr<bool> alive_ = alive_owner_.flag;

  std::string role_;
  int index_;
  std::string job_id_;
  std::string host_;  // that the coordinator knows us by
  bool welcomed_ = false;
  std::vector<std::pair<host::PortLease, bool>> leases_;  // with `plain`
  int64_t generation_ = 0;
  std::string cluster_;
  int attempt_ = -1;
  int64_t memory_limit_ = 0;
  LogSpool spool_;
  int processes_ = 1;
  std::unique_ptr<TaskOutput> output_;  // of the attempt
  std::vector<std::string> on_log_;
  int log_rule_ = -1;      // of them, that a line matched first
  std::string not_ready_;  // why it was killed
  Duration grace_{0};
  std::string stolen_;        // who listens on a port of ours, once seen
  bool stolen_told_ = false;  // on this connection
  bool ready_ = false;
  bool ready_told_ = false;            // on this connection
  std::vector<json::object> results_;  // of the attempt; told again on every connection
  size_t unsent_reports_from_ = 0;
  std::vector<Ended> ended_;  // not acknowledged
  host::Usage usage_;
  bool released_ = false;
  bool stopping_ = false;
  bool gone_ = false;  // the coordinator will not take anything any more
  bool left_ = false;
  net::Loop::Id sample_timer_ = 0;
  net::Loop::Id end_timer_ = 0;
  std::unique_ptr<Link> link_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<Program> ending_;
  std::unique_ptr<ReadyCheck> ready_check_;
  std::unique_ptr<PortWatch> port_watch_;
};

}  // namespace

Result<std::unique_ptr<Launcher>> Launcher::Start(net::Loop* loop, LauncherOptions options,
                                                  std::function<void(int)> on_end) {
  TRY_ASSIGN(std::string token, ReadTokenFile(options.job_dir));
  auto launcher =
      std::make_unique<TaskLauncher>(loop, std::move(options), std::move(token), std::move(on_end));
  launcher->Open();
  return std::unique_ptr<Launcher>(std::move(launcher));
}

int RunLauncher(LauncherOptions options) {
  SetLogName(options.role + "-" + std::to_string(options.index));
  ::signal(SIGPIPE, SIG_IGN);
  net::Loop loop;
  int exit_code = kNotDelivered;
  options.isolation = host::ProbeIsolation();
  options.copy_fd = STDOUT_FILENO;
  // What the job says, where the engine has put the job's file within our reach.
  if (auto files = ReadJobFiles(options.job_dir); files.ok()) {
    options.coordinator_timeout = files->job.limits.coordinator_timeout;
  }
  auto launcher = Launcher::Start(&loop, std::move(options), [&](int code) {
    exit_code = code;
    loop.Stop();
  });
  if (!launcher.ok()) {
    LogError("{}", launcher.status().message());
    return kNotDelivered;
  }
  for (const int signal : {SIGTERM, SIGINT}) {
    loop.WatchSignal(signal, [&] { (*launcher)->Stop(); });
  }
  loop.Run();
  launcher->reset();
  return exit_code;
}

}  // namespace shoal::rendezvous
