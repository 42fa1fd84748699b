#include "rendezvous/launcher/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "base/fault_injection.h"
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "host/network/port_lease.h"
#include "job/execution/job_dir.h"
#include "net/address.h"
#include "rendezvous/bootstrap/coordinator_lookup.h"
#include "rendezvous/bootstrap/job_files.h"
#include "rendezvous/launcher/attempt.h"
#include "rendezvous/launcher/engine_interface.h"
#include "rendezvous/logs/log_spool.h"
#include "rendezvous/logs/timed_log_writer.h"
#include "rendezvous/protocol/cluster_message.h"
#include "rendezvous/protocol/coordinator_connection.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/transfer/output_uploader.h"

namespace shoal::rendezvous {
namespace {

constexpr int kExitNotDelivered = 77;
constexpr size_t kSendHighWater = 1 << 20;
constexpr auto kLogGrowthInterval = std::chrono::milliseconds(20);  // between two reports of it
// How many port conflicts are accepted that only the program reports.
constexpr int kMaxReportedConflicts = 3;
constexpr auto kDeliveryTimeout = std::chrono::seconds(2);  // to deliver an end after SIGTERM

// Keeps a CoordinatorConnection and at most one running Attempt. Ends and results are kept until
// the coordinator acknowledges them, and are sent again on every connection; log bytes are written
// to the shared directory or sent from a LogSpool.
//
// Lifecycle: Open dials; the coordinator's messages start, drain and kill attempts; the launcher
// ends when it is released, refused or stopped, or when the coordinator stays unreachable.
class TaskLauncher final : public Launcher {
 public:
  TaskLauncher(net::Loop* loop, LauncherOptions options, std::string token,
               std::function<void(int)> on_end)
      : loop_(loop),
        options_(std::move(options)),
        token_(std::move(token)),
        on_end_(std::move(on_end)),
        role_(options_.role),
        index_(options_.index) {
    struct stat info {};
    if (options_.copy_fd >= 0 && ::fstat(options_.copy_fd, &info) == 0) copy_mode_ = info.st_mode;
  }

  ~TaskLauncher() override {
    loop_->Cancel(end_timer_);
    loop_->Cancel(growth_timer_);
  }

  void Open() {
    CoordinatorConnectionOptions connection_options;
    connection_options.find = [dir = options_.job_dir] { return FindCoordinator(dir); };
    connection_options.token = token_;
    connection_options.give_up_after = options_.coordinator_timeout;
    connection_options.at_first = options_.at_first;
    CoordinatorConnectionCallbacks calls;
    calls.hello = [this] { return Hello(); };
    calls.heartbeat = [this] { return Heartbeat(); };
    calls.on_up = [this] { unsent_reports_from_ = 0; };
    calls.on_message = [this](const std::string& type, const json::object& message) {
      const Status status = Received(type, message);
      if (!status.ok()) LogError("message '{}' of the coordinator: {}", type, status.message());
    };
    calls.on_binary = [this](std::string_view frame) {
      const Status status = Described(frame);
      if (!status.ok()) LogError("the coordinator's description: {}", status.message());
    };
    calls.on_drain = [this] { Pump(); };
    calls.on_down = [this](const Status& why) {
      LogWarning("lost the coordinator: {}", why.message());
      welcomed_ = false;
      spool_.Rewind();
      ready_sent_ = port_conflict_sent_ = false;
      reported_log_bytes_ = 0;
      for (Ended& one : ended_) one.sent = false;
    };
    calls.on_given_up = [this](const Status& why) { GivenUp(why); };
    connection_ =
        CoordinatorConnection::Start(loop_, std::move(connection_options), std::move(calls));
  }

  void Stop() override {
    if (std::exchange(stopping_, true)) return;
    LogInfo("told to stop");
    if (running()) {
      run_->Interrupt("its launcher was told to stop by a signal");
    } else {
      ScheduleExit();
    }
  }

 private:
  struct Ended {
    EndedMessage message;
    bool here = false;  // this launcher wrote its log
    bool sent = false;
    bool storing = false;  // its outputs are being uploaded
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
    hello.has_program = running() || !ended_.empty();
    hello.node = options_.node;
    return ToJson(hello);
  }

  json::object Heartbeat() const {
    if (sender_) return {{"attempt", attempt_}, {"storing", true}, {"still_ms", 0}};
    if (!running()) return {};
    json::object beat{{"attempt", attempt_},
                      {"rss_bytes", run_->usage().memory_bytes},
                      {"cpu_seconds", run_->usage().cpu_seconds}};
    AddIdleTime(&beat);
    return beat;
  }

  void AddIdleTime(json::object* message) const {
    const auto still = run_->still();
    if (still) {
      (*message)["still_ms"] =
          std::chrono::duration_cast<std::chrono::milliseconds>(*still).count();
    }
  }

  Status Inspect(const json::object& message) {
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    if (!running() || attempt != attempt_) return Status::Ok();
    json::object diagnostics{{"attempt", attempt_}, {"body", run_->Inspect()}};
    AddIdleTime(&diagnostics);
    connection_->Send("evidence", std::move(diagnostics));
    return Status::Ok();
  }

  Status Received(const std::string& type, const json::object& message) {
    if (type == "welcome") return Welcomed(message);
    if (type == "start") return StartProgram(message);
    if (type == "drain" || type == "kill") return StopProgram(type, message);
    if (type == "log_ack") {
      TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
      TRY_ASSIGN(const int64_t bytes, GetInt(message, "bytes"));
      spool_.Ack(static_cast<int>(attempt), bytes);
      if (running() && spool_.bytes() < kSpoolLimit / 2) run_->Resume();
      return Status::Ok();
    }
    if (type == "ack") return Acked(message);
    if (type == "inspect") return Inspect(message);
    if (type == "release") {
      released_ = true;
      ExitIfDone();
    } else if (type == "wait") {
      LogInfo("{}", GetStringOr(message, "text", ""));
    } else if (type == "refuse") {
      if (GetBoolOr(message, "excluded", false)) lost_code_ = job::kExitHostExcluded;
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
      TRY_ASSIGN(host::PortLease lease,
                 host::PortLease::Acquire(ranges, [] { return RandomSeed(); }));
      leased.ports.push_back(lease.port());
      leases_.push_back({std::move(lease), GetBoolOr(port.get_object(), "plain", false)});
    }
    leased.host = options_.host;
    if (leased.host.empty()) {
      TRY_ASSIGN(leased.host, net::AdvertisedHost(connection_->address().host));
    }
    host_ = leased.host;
    connection_->Send("leased", ToJson(leased));
    return Status::Ok();
  }

  Status Described(std::string_view frame) {
    TRY_ASSIGN(ClusterMessage description, DecodeClusterMessage(frame));
    generation_ = description.generation;
    cluster_ = std::move(description.cluster);
    return running() ? run_->Describe(cluster_) : Status::Ok();
  }

  // Sends what the coordinator has not stored, as far as the connection has room; an attempt's end
  // after its last log line.
  void Pump() {
    if (!welcomed_ || !connection_->up()) return;
    while (connection_->queued_bytes() < kSendHighWater) {
      const LogSpool::Chunk* chunk = spool_.Next();
      if (chunk == nullptr) break;
      connection_->SendBinary(
          EncodeLogFrame({role_, index_, chunk->attempt}, chunk->offset, chunk->bytes));
    }
    SendResults();
    ScheduleLogGrowth();
    if (running() && run_->ready() && !std::exchange(ready_sent_, true)) {
      connection_->Send("ready", {{"attempt", attempt_}});
    }
    if (running() && !run_->port_conflict().empty() && !std::exchange(port_conflict_sent_, true)) {
      connection_->Send("stolen", {{"attempt", attempt_}, {"text", run_->port_conflict()}});
    }
    for (Ended& one : ended_) {
      if (one.sent || one.storing || !spool_.AllSent(one.message.attempt)) continue;
      one.sent = true;
      if (one.here) SendLogGrowth(one.message.attempt, one.message.log_bytes);
      connection_->Send("ended", ToJson(one.message));
    }
  }

  void SendResults() {
    for (; unsent_reports_from_ < results_.size(); ++unsent_reports_from_) {
      connection_->Send("report", results_[unsent_reports_from_]);
    }
  }

  Status Acked(const json::object& message) {
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    spool_.AckAll(static_cast<int>(attempt));
    std::erase_if(ended_, [&](const Ended& one) { return one.message.attempt <= attempt; });
    if (stopping_ && !run_ && ended_.empty()) ScheduleExit();
    ExitIfDone();
    return Status::Ok();
  }

  // ---- The program ----

  bool running() const { return run_ != nullptr && run_->running(); }

  std::vector<uint16_t> Ports() const {
    std::vector<uint16_t> ports;
    for (const auto& [lease, plain] : leases_) ports.push_back(lease.port());
    return ports;
  }

  Status StartProgram(const json::object& message) {
    TRY_ASSIGN(StartMessage start, StartFromJson(message));
    if (start.attempt <= attempt_ || run_ || stopping_) return Status::Ok();
    attempt_ = start.attempt;
    if (const auto find = std::exchange(options_.find_isolation, {})) options_.isolation = find();
    ready_sent_ = port_conflict_sent_ = false;
    BeginLog(start.log_directory_id);
    results_.clear();
    unsent_reports_from_ = 0;
    for (auto& [lease, plain] : leases_) {
      if (plain) lease.Release();
    }
    AttemptSpec spec{std::move(start),
                     options_.job_dir,
                     job_id_,
                     role_,
                     index_,
                     host_,
                     Ports(),
                     cluster_,
                     options_.isolation,
                     reported_conflicts_ < kMaxReportedConflicts};
    AttemptCallbacks calls;
    calls.on_log = [this](std::string_view text) { return Printed(text); };
    calls.on_report = [this](const json::object& report) { Reported(report); };
    calls.on_change = [this] { Pump(); };
    calls.on_end = [this](EndedMessage ended) { AttemptEnded(std::move(ended)); };
    run_ = Attempt::Make(loop_, std::move(spec), std::move(calls));
    run_->Start();
    return Status::Ok();
  }

  Status StopProgram(const std::string& how, const json::object& message) {
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    if (sender_ && attempt == attempt_ && GetBoolOr(message, "abandon", false))
      OutputsStored(Cancelled("the job was killed before all of them had come"));
    if (!running() || attempt != attempt_) return Status::Ok();
    LogInfo("{}: {}", how, GetStringOr(message, "text", ""));
    if (how == "drain") {
      TRY_ASSIGN(const int64_t grace, GetInt(message, "grace_ms"));
      const int64_t signal = GetIntOr(message, "signal", 0);
      if (signal < 0 || signal >= NSIG)
        return InvalidArgument("field 'signal' is out of its range");
      run_->Drain(std::chrono::milliseconds(grace), static_cast<int>(signal));
    } else {
      run_->Kill();
    }
    return Status::Ok();
  }

  bool Printed(std::string_view text) {
    if (WrittenHere(text)) {
      if (!S_ISREG(copy_mode_)) Copy(text);
      ScheduleLogGrowth();
      return true;
    }
    spool_.Append(attempt_, text);
    Copy(text);
    Pump();
    return spool_.bytes() < kSpoolLimit;
  }

  // ---- A log that is written here ----

  std::filesystem::path LogsDir() const { return job::JobDir(options_.job_dir).logs(); }

  // `place` is the coordinator's: a file is made with the first line.
  void BeginLog(const std::string& place) {
    segment_.reset();
    reported_log_bytes_ = 0;
    const auto ours = DirectoryIdentity(LogsDir());
    here_ = shares_ = ours.ok() && *ours == place;
  }

  // False: the bytes go to the coordinator, which reports it if they cannot be stored.
  bool WrittenHere(std::string_view text) {
    if (!here_) return false;
    const Status status = WriteHere(text);
    if (status.ok()) return true;
    LogWarning("cannot write the log here: {}; the coordinator gets it", status.message());
    here_ = false;
    if (segment_) spool_.Begin(attempt_, segment_->size());
    return false;
  }

  Status WriteHere(std::string_view text) {
    TRY(FaultPoint("launcher.log"));
    if (!segment_) {
      TRY_ASSIGN(auto writer, TimedLogWriter::Open(LogsDir(), {role_, index_, attempt_}));
      segment_.emplace(std::move(writer));
    }
    return segment_->Append(segment_->size(), text).status();
  }

  // Not for every line: readers take many lines at once, and a message costs more than a line.
  void ScheduleLogGrowth() {
    if (!here_ || !segment_ || growth_timer_ != 0 || !welcomed_ || !connection_->up()) return;
    if (segment_->size() == reported_log_bytes_) return;
    reported_log_bytes_ = segment_->size();
    SendLogGrowth(attempt_, reported_log_bytes_);
    growth_timer_ = loop_->After(kLogGrowthInterval, [this] {
      growth_timer_ = 0;
      ScheduleLogGrowth();
    });
  }

  void SendLogGrowth(int attempt, int64_t bytes) {
    connection_->Send("log_grew", {{"attempt", attempt}, {"bytes", bytes}});
  }

  // Copies to this process's output as far as its reader keeps up; the program never waits for it.
  void Copy(std::string_view bytes) const {
    // A pipe that polls writable takes at least so much; a file takes everything.
    const size_t atomic = S_ISREG(copy_mode_) ? bytes.size() : 4096;
    while (options_.copy_fd >= 0 && !bytes.empty()) {
      pollfd out{options_.copy_fd, POLLOUT, 0};
      if (::poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) return;
      const size_t take = std::min(bytes.size(), atomic);
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
      connection_->Send("report", std::move(fields));
    }
  }

  void AttemptEnded(EndedMessage ended) {
    reported_conflicts_ += run_->conflict_is_only_reported() ? 1 : 0;
    // The Attempt is in its last callback.
    ending_ = std::move(run_);
    loop_->Post([this, alive = alive_] {
      if (*alive) ending_.reset();
    });
    const bool here = here_ && segment_;
    ended.log_bytes = here ? segment_->size() : spool_.log_bytes(ended.attempt);
    here_ = false;
    segment_.reset();
    ended_.push_back({std::move(ended), here});
    StoreOutputs();
    Pump();
    if (stopping_) ScheduleExit();
  }

  // ---- Outputs, where the coordinator does not see what the program has written ----

  void StoreOutputs() {
    const LogKey key{role_, index_, attempt_};
    const std::filesystem::path directory =
        job::JobDir(options_.job_dir).outputs() / std::filesystem::path(LogFileName(key)).stem();
    std::error_code error;  // an empty one was removed
    if (shares_ || gone_ || !std::filesystem::exists(directory, error)) return;
    ended_.back().storing = true;
    sender_ = OutputUploader::Start(loop_,
                                    {[dir = options_.job_dir] { return FindCoordinator(dir); },
                                     token_, key, directory, options_.coordinator_timeout},
                                    [this](const Status& status) { OutputsStored(status); });
    connection_->Send("heartbeat", Heartbeat());  // tells that outputs are being stored
  }

  void OutputsStored(const Status& status) {
    sender_.reset();
    if (!status.ok()) LogWarning("outputs are lost: {}", status.message());
    for (Ended& one : ended_) {
      if (std::exchange(one.storing, false)) one.message.outputs_lost = status.message();
    }
    Pump();
    if (stopping_) ScheduleExit();
  }

  // ---- The end ----

  // The coordinator cannot be reached any more, or has ended without waiting for this launcher.
  void GivenUp(const Status& why) {
    LogWarning("gave the coordinator up: {}", why.message());
    gone_ = true;
    stopping_ = true;
    if (running()) {
      run_->Drain();
    } else {
      ScheduleExit();
    }
  }

  void Refused(const Status& why) {
    LogError("{}", why.message());
    gone_ = true;
    stopping_ = true;
    if (running()) {
      run_->Kill();
    } else {
      ScheduleExit();
    }
  }

  void ScheduleExit() {
    const bool may_deliver = !gone_ && !ended_.empty();
    if (sender_ && may_deliver) return;  // called again when the upload has ended
    loop_->Cancel(std::exchange(end_timer_, 0));
    end_timer_ = loop_->After(may_deliver ? Duration(kDeliveryTimeout) : Duration::zero(),
                              [this] { Leave(released_ ? 0 : lost_code_); });
  }

  void ExitIfDone() {
    if (!released_ || run_ || !ended_.empty()) return;
    loop_->Cancel(std::exchange(end_timer_, 0));
    end_timer_ = loop_->After(Duration::zero(), [this] { Leave(0); });
  }

  void Leave(int exit_code) {
    if (std::exchange(left_, true)) return;
    connection_.reset();
    const auto on_end = on_end_;
    on_end(exit_code);
  }

  struct AliveFlag {
    std::shared_ptr<bool> flag = std::make_shared<bool>(true);
    ~AliveFlag() { *flag = false; }
  };

  // Constant after construction.
  net::Loop* const loop_;
  LauncherOptions options_;  // constant after construction, except `isolation`
  const std::string token_;
  const std::function<void(int)> on_end_;
  const std::string instance_ = RandomHex(8);
  mode_t copy_mode_ = 0;
  AliveFlag alive_owner_;
  const std::shared_ptr<bool> alive_ = alive_owner_.flag;

  std::string role_;
  int index_;
  std::string job_id_;
  std::string host_;  // by which the coordinator knows this host
  bool welcomed_ = false;
  std::vector<std::pair<host::PortLease, bool>> leases_;  // with `plain`
  int64_t generation_ = 0;
  std::string cluster_;
  int attempt_ = -1;
  LogSpool spool_;
  bool shares_ = false;                    // the coordinator's directory is visible here
  bool here_ = false;                      // this launcher writes the attempt's log
  std::optional<TimedLogWriter> segment_;  // opened with the first line
  int64_t reported_log_bytes_ = 0;         // on this connection
  net::Loop::Id growth_timer_ = 0;
  bool port_conflict_sent_ = false;    // on this connection
  int reported_conflicts_ = 0;         // that only the program reported
  bool ready_sent_ = false;            // on this connection
  std::vector<json::object> results_;  // of the attempt; sent again on every connection
  size_t unsent_reports_from_ = 0;
  std::vector<Ended> ended_;  // not acknowledged
  bool released_ = false;
  bool stopping_ = false;
  bool gone_ = false;  // the coordinator accepts nothing any more
  bool left_ = false;
  int lost_code_ = kExitNotDelivered;
  net::Loop::Id end_timer_ = 0;
  std::unique_ptr<CoordinatorConnection> connection_;
  std::unique_ptr<OutputUploader> sender_;
  std::unique_ptr<Attempt> run_;     // while it runs
  std::unique_ptr<Attempt> ending_;  // until its callbacks have returned
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
  int exit_code = kExitNotDelivered;
  // Tearing down namespaces takes the kernel milliseconds; the coordinator is dialled meanwhile.
  std::future<host::Isolation> probe = std::async(std::launch::async, host::ProbeIsolation);
  options.find_isolation = [&probe] { return probe.get(); };
  options.copy_fd = STDOUT_FILENO;
  options.node = LocalNodeName();
  // Limits of job.json, if the engine has put that file within reach.
  if (auto files = ReadJobFiles(options.job_dir); files.ok()) {
    options.coordinator_timeout = files->job.limits.coordinator_timeout;
    if (options.no_shared_filesystem) options.at_first = files->job.limits.gather;
  }
  auto launcher = Launcher::Start(&loop, std::move(options), [&](int code) {
    exit_code = code;
    loop.Stop();
  });
  if (!launcher.ok()) {
    LogError("{}", launcher.status().message());
    return kExitNotDelivered;
  }
  for (const int signal : {SIGTERM, SIGINT}) {
    loop.WatchSignal(signal, [&] { (*launcher)->Stop(); });
  }
  loop.Run();
  launcher->reset();
  return ExitCodeForEngine(exit_code);
}

}  // namespace shoal::rendezvous
