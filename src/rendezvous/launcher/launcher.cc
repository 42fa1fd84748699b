#include "rendezvous/launcher/launcher.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/log.h"
#include "host/network/port_lease.h"
#include "job/execution/job_dir.h"
#include "net/address.h"
#include "rendezvous/bootstrap/coordinator_lookup.h"
#include "rendezvous/bootstrap/job_files.h"
#include "rendezvous/launcher/attempt.h"
#include "rendezvous/launcher/attempt_log.h"
#include "rendezvous/launcher/engine_interface.h"
#include "rendezvous/launcher/report_queue.h"
#include "rendezvous/protocol/cluster_message.h"
#include "rendezvous/protocol/coordinator_connection.h"
#include "rendezvous/protocol/messages.h"
#include "rendezvous/transfer/output_uploader.h"

namespace shoal::rendezvous {
namespace {

constexpr int kExitNotDelivered = 77;
// How many port conflicts are accepted that only the program reports.
constexpr int kMaxReportedConflicts = 3;
constexpr auto kDeliveryTimeout = std::chrono::seconds(2);  // to deliver an end after SIGTERM

// Keeps a CoordinatorConnection and at most one running Attempt, whose log is an AttemptLog and
// whose results and end go through a ReportQueue.
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
        task_{options_.role, options_.index, "", ""},
        log_(loop, job::JobDir(options_.job_dir).logs(), options_.copy_fd,
             [this](int attempt, int64_t bytes) {
               if (!connected()) return false;
               connection_->Send("log_grew", LogGrowth(attempt, bytes));
               return true;
             }) {}

  ~TaskLauncher() override { loop_->Cancel(end_timer_); }

  void Open() {
    CoordinatorConnectionOptions connection_options;
    connection_options.find = [dir = options_.job_dir] { return FindCoordinator(dir); };
    connection_options.token = token_;
    connection_options.give_up_after = options_.coordinator_timeout;
    connection_options.at_first = options_.at_first;
    CoordinatorConnectionCallbacks calls;
    calls.hello = [this] { return Hello(); };
    calls.heartbeat = [this] { return Heartbeat(); };
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
      log_.Rewind();
      reports_.Rewind();
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
  // ---- The connection ----

  // Messages can be sent.
  bool connected() const { return welcomed_ && connection_ && connection_->up(); }

  json::object Hello() const {
    TaskHello hello;
    hello.role = task_.role;
    hello.index = task_.index;
    hello.incarnation = options_.incarnation;
    hello.instance = instance_;
    hello.pid = ::getpid();
    hello.generation = generation_;
    hello.last_attempt = attempt_;
    hello.has_program = running() || !reports_.empty();
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
      log_.Ack(static_cast<int>(attempt), bytes);
      if (running() && log_.HasRoom()) run_->Resume();
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
    TRY_ASSIGN(task_.role, GetString(message, "role"));
    TRY_ASSIGN(const int64_t index, GetInt(message, "index"));
    TRY_ASSIGN(task_.job_id, GetString(message, "job"));
    TRY_ASSIGN(const bool lease, GetBool(message, "lease"));
    task_.index = static_cast<int>(index);
    SetLogName(task_.role + "-" + std::to_string(task_.index));
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
    task_.host = leased.host;
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
    if (!connected()) return;
    log_.SendTo(connection_.get());
    const ReportQueue::Send send = [this](const std::string& type, json::object message) {
      connection_->Send(type, std::move(message));
    };
    reports_.SendResults(send);
    log_.ScheduleGrowthReport();
    if (running() && run_->ready()) reports_.SendReady(attempt_, send);
    if (running() && !run_->port_conflict().empty())
      reports_.SendPortConflict(attempt_, run_->port_conflict(), send);
    reports_.SendEnds([this](int attempt) { return log_.AllSent(attempt); }, send);
  }

  Status Acked(const json::object& message) {
    TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
    log_.AckAll(static_cast<int>(attempt));
    reports_.Acknowledge(static_cast<int>(attempt));
    if (stopping_ && !run_ && reports_.empty()) ScheduleExit();
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
    std::error_code error;
    SetOwnProgram(std::filesystem::read_symlink("/proc/self/exe", error).string(), &start);
    attempt_ = start.attempt;
    if (const auto find = std::exchange(options_.find_isolation, {})) options_.isolation = find();
    log_.Begin({task_.role, task_.index, attempt_}, start.log_directory_id);
    reports_.BeginAttempt();
    for (auto& [lease, plain] : leases_) {
      if (plain) lease.Release();
    }
    AttemptSpec spec{std::move(start),
                     options_.job_dir,
                     task_.job_id,
                     task_.role,
                     task_.index,
                     task_.host,
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
    const bool goes_on = log_.Append(text);
    Pump();
    return goes_on;
  }

  void Reported(const json::object& report) {
    json::object fields{{"attempt", attempt_}, {"body", report}};
    if (report.contains("result")) {
      reports_.AddResult(std::move(fields));
      Pump();
    } else if (welcomed_) {
      connection_->Send("report", std::move(fields));
    }
  }

  void AttemptEnded(EndedMessage ended) {
    reported_conflicts_ += run_->conflict_is_only_reported() ? 1 : 0;
    // The Attempt is in its last callback.
    ending_ = std::move(run_);
    loop_->Post([this, alive = alive_.flag] {
      if (*alive) ending_.reset();
    });
    const AttemptLog::Finished log = log_.Finish();
    ended.log_bytes = log.bytes;
    reports_.AddEnd(std::move(ended), log.written_here);
    StoreOutputs();
    Pump();
    if (stopping_) ScheduleExit();
  }

  // ---- Outputs, where the coordinator does not see what the program has written ----

  void StoreOutputs() {
    const LogKey key{task_.role, task_.index, attempt_};
    const std::filesystem::path directory =
        job::JobDir(options_.job_dir).outputs() / std::filesystem::path(LogFileName(key)).stem();
    std::error_code error;  // an empty one was removed
    if (log_.shares_directory() || gone_ || !std::filesystem::exists(directory, error)) return;
    reports_.HoldForOutputs();
    sender_ = OutputUploader::Start(loop_,
                                    {[dir = options_.job_dir] { return FindCoordinator(dir); },
                                     token_, key, directory, options_.coordinator_timeout},
                                    [this](const Status& status) { OutputsStored(status); });
    connection_->Send("heartbeat", Heartbeat());  // tells that outputs are being stored
  }

  void OutputsStored(const Status& status) {
    sender_.reset();
    if (!status.ok()) LogWarning("outputs are lost: {}", status.message());
    reports_.OutputsStored(status);
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
    const bool may_deliver = !gone_ && !reports_.empty();
    if (sender_ && may_deliver) return;  // called again when the upload has ended
    loop_->Cancel(std::exchange(end_timer_, 0));
    end_timer_ = loop_->After(may_deliver ? Duration(kDeliveryTimeout) : Duration::zero(),
                              [this] { Leave(released_ ? 0 : lost_code_); });
  }

  void ExitIfDone() {
    if (!released_ || run_ || !reports_.empty()) return;
    loop_->Cancel(std::exchange(end_timer_, 0));
    end_timer_ = loop_->After(Duration::zero(), [this] { Leave(0); });
  }

  void Leave(int exit_code) {
    if (std::exchange(left_, true)) return;
    connection_.reset();
    const auto on_end = on_end_;
    on_end(exit_code);
  }

  // As the coordinator's welcome says.
  struct TaskIdentity {
    std::string role;
    int index = -1;
    std::string job_id;
    std::string host;  // by which the coordinator knows this host
  };
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
  const AliveFlag alive_;

  TaskIdentity task_;
  bool welcomed_ = false;
  std::vector<std::pair<host::PortLease, bool>> leases_;  // with `plain`
  int64_t generation_ = 0;
  std::string cluster_;
  int attempt_ = -1;
  AttemptLog log_;
  ReportQueue reports_;
  int reported_conflicts_ = 0;  // port conflicts that only the program reported
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
