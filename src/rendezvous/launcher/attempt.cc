#include "rendezvous/launcher/attempt.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/fault_injection.h"
#include "base/file.h"
#include "base/log.h"
#include "host/files/disk_retry.h"
#include "host/network/port_lease.h"
#include "host/process/process_activity.h"
#include "job/execution/job_dir.h"
#include "job/execution/state.h"
#include "rendezvous/launcher/activity_tracker.h"
#include "rendezvous/launcher/metric_lines.h"
#include "rendezvous/launcher/port_conflict_watcher.h"
#include "rendezvous/launcher/program.h"
#include "rendezvous/launcher/program_end.h"
#include "rendezvous/launcher/ready_check.h"
#include "rendezvous/launcher/stall_diagnostics.h"
#include "rendezvous/launcher/task_environment.h"
#include "rendezvous/launcher/task_output.h"
#include "rendezvous/launcher/task_secrets.h"
#include "rendezvous/logs/last_line.h"

namespace shoal::rendezvous {
namespace {

using Millis = std::chrono::milliseconds;

constexpr auto kSampleEvery = std::chrono::seconds(1);

std::vector<std::string> WatchedLines(const StartMessage& start) {
  std::vector<std::string> lines = start.on_log;
  if (start.ready.by == job::ReadyBy::kLog) lines.push_back(start.ready.line);
  return lines;
}

// An end that is reported later, or as soon as the program is to end.
class DelayedEnd {
 public:
  explicit DelayedEnd(net::Loop* loop) : loop_(loop) {}
  ~DelayedEnd() { loop_->Cancel(timer_); }
  DelayedEnd(const DelayedEnd&) = delete;
  DelayedEnd& operator=(const DelayedEnd&) = delete;

  void Start(Duration delay, std::function<void()> report) {
    report_ = std::move(report);
    timer_ = loop_->After(delay, [this] { (void)Conclude(); });
  }
  // Reports it now; false if there is none.
  bool Conclude() {
    if (!report_) return false;
    loop_->Cancel(std::exchange(timer_, 0));
    const std::function<void()> report = std::exchange(report_, nullptr);
    report();
    return true;
  }

 private:
  net::Loop* const loop_;
  net::Loop::Id timer_ = 0;
  std::function<void()> report_;
};

// Start creates the directories and the program, which may wait for disk space; then output,
// reports, readiness, port conflicts and activity are forwarded to the callbacks, until the
// program's end is complete and on_end is called once.
class TaskAttempt final : public Attempt {
 public:
  TaskAttempt(net::Loop* loop, AttemptSpec spec, AttemptCallbacks calls)
      : loop_(loop),
        spec_(std::move(spec)),
        calls_(std::move(calls)),
        grace_(std::chrono::milliseconds(spec_.start.grace_ms)),
        processes_(std::max(1, static_cast<int>(spec_.start.processes.size()))),
        output_(processes_, WatchedLines(spec_.start)),
        activity_(Now()),
        looked_(Now()),
        delayed_end_(loop) {}

  ~TaskAttempt() override {
    *alive_ = false;
    loop_->Cancel(sample_timer_);
    loop_->Cancel(start_timer_);
  }

  void Start() override { TryToStart(Now()); }

  // The disk may be full, or failing, for a moment.
  void TryToStart(TimePoint begun) {
    const bool again = std::exchange(start_timer_, 0) != 0;
    Status status = Prepare();
    if (!status.ok() && Now() - begun < host::DiskErrorTimeout(status)) {
      if (!again) LogWarning("{}; tried again", status.message());
      start_timer_ = loop_->After(host::kDiskRetryInterval, [this, begun] { TryToStart(begun); });
      return;
    }
    if (status.ok()) status = Spawn();
    if (status.ok()) return;
    RemoveTaskDirectories(Paths());
    program_.reset();
    Finish(StartFailureEnd(status));
  }

  void Drain(Duration grace, int signal) override {
    if (delayed_end_.Conclude()) return;
    ordered_ = true;
    if (program_) program_->Drain(grace, signal);
    StopWaiting();
  }
  void Drain() override { Drain(grace_, 0); }
  void Interrupt(const std::string& by) override {
    if (!ordered_) interrupted_ = by;
    if (delayed_end_.Conclude()) return;
    if (program_) program_->Drain(grace_, 0);
    StopWaiting();
  }
  void Kill() override {
    if (delayed_end_.Conclude()) return;
    ordered_ = true;
    if (program_) program_->Kill();
    StopWaiting();
  }
  void Resume() override {
    if (program_) program_->Resume();
  }
  Status Describe(std::string cluster) override {
    spec_.cluster = std::move(cluster);
    return program_ && !ended_ ? WriteClusterFile() : Status::Ok();
  }

  bool running() const override { return (program_ || start_timer_ != 0) && !ended_; }
  bool ready() const override { return ready_; }
  const std::string& port_conflict() const override { return conflict_.text; }
  bool conflict_is_only_reported() const override { return conflict_.only_reported; }
  const host::Usage& usage() const override { return usage_; }
  std::optional<Duration> still() const override {
    if (spec_.start.watch_ms <= 0 || !running()) return std::nullopt;
    return activity_.still(Now());
  }
  json::object Inspect() const override {
    json::object body;
    if (program_ && !ended_) body = CollectStallDiagnostics(program_->Pids());
    body["cpu_seconds"] = usage_.cpu_seconds;
    if (last_output_.at) {
      body["last_line"] = CleanText(output_.last_line(last_output_.process), kLastLineBytes);
      body["last_line_ms"] = std::chrono::duration_cast<Millis>(Now() - *last_output_.at).count();
    }
    return body;
  }

 private:
  // ---- The start ----

  std::string PathOf(const std::string& suffix) const {
    return job::JobDir(spec_.job_dir).scratch().string() + "/" + spec_.role + "-" +
           std::to_string(spec_.index) + suffix;
  }
  std::string ScratchDir() const { return PathOf("." + std::to_string(spec_.start.attempt)); }
  std::string ClusterFile() const { return PathOf(".cluster.json"); }
  AttemptPaths Paths() const {
    return {spec_.job_dir, ScratchDir(), ClusterFile(), spec_.cluster,
            job::JobDir(spec_.job_dir).outputs().string() + "/" + Name()};
  }
  std::string Name() const {
    return spec_.role + "-" + std::to_string(spec_.index) + "." +
           std::to_string(spec_.start.attempt);
  }

  Status WriteClusterFile() const {
    return WriteFileAtomically(ClusterFile(), spec_.cluster + "\n", 0600, false);
  }

  std::vector<std::string> Environment(
      const std::vector<std::pair<std::string, std::string>>& process) const {
    return BuildTaskEnvironment(spec_.start, process, Paths());
  }

  host::ProcessSpec ProcessOf(const StartMessage& start) const {
    host::ProcessSpec process;
    process.job_id = spec_.job_id;
    process.name = Name();
    process.argv = start.argv;
    process.env = Environment({});
    for (size_t i = 0; i < start.processes.size(); ++i) {
      auto env = Environment(start.processes[i]);
      if (i == 0) {
        process.env = std::move(env);
      } else {
        process.additional.push_back({std::move(env)});
      }
    }
    process.grace = std::chrono::milliseconds(start.grace_ms);
    process.work_dir = start.work_dir;
    process.resources.cpu = start.cpu;
    process.resources.memory_bytes = start.memory_bytes;
    return process;
  }

  // Files that the program finds on disk.
  Status Prepare() {
    TRY(FaultPoint("launcher.prepare"));
    TRY(MakeTaskDirectories(Paths()));
    TRY(WriteClusterFile());
    auto variables = spec_.start.env;
    TRY(FillInSecrets(Paths(), &variables));
    spec_.start.env = std::move(variables);
    return Status::Ok();
  }

  // Told to end while it waits for disk space.
  void StopWaiting() {
    if (start_timer_ == 0) return;
    loop_->Cancel(std::exchange(start_timer_, 0));
    ended_ = true;
    RemoveTaskDirectories(Paths());
    Finish(job::CancelledEnd("it was stopped while it waited for room on the disk"));
  }

  Status Spawn() {
    ProgramCallbacks calls;
    const auto metrics = std::make_shared<MetricLines>(processes_, [this](json::object metric) {
      calls_.on_report({{"progress", std::move(metric)}});
    });
    calls.on_output = [this, metrics](int process, std::string_view bytes) {
      Printed(process);
      metrics->Feed(process, bytes, *last_output_.at);
      const bool more = Log(output_.Take(process, bytes));
      LookAtMatches();
      return more;
    };
    calls.on_report = [this](const json::object& report) {
      activity_.RecordActivity(Now());
      calls_.on_report(report);
    };
    // A signal to this process that arrived before the end may not have been handled yet; it is the
    // loop's next event. A sender that signals all processes of a task reaches launcher and program
    // at about the same time.
    calls.on_end = [this, metrics](const host::ProcessExit& exit) {
      metrics->Finish(Now());
      loop_->Post([this, exit, alive = alive_] {
        if (*alive) ProgramEnded(exit);
      });
    };
    TRY_ASSIGN(program_,
               Program::Start(loop_, {ProcessOf(spec_.start)}, spec_.isolation, std::move(calls)));
    if (spec_.start.ready.by != job::ReadyBy::kStart) CheckReady();
    WatchPorts();
    SampleLater();
    return Status::Ok();
  }

  // ---- While it runs ----

  static TimePoint Now() { return RealClock::Get()->Now(); }

  void Printed(int process) {
    last_output_.process = process;
    last_output_.at = Now();
    activity_.RecordActivity(*last_output_.at);
  }

  bool Log(std::string_view text) { return text.empty() || calls_.on_log(text); }

  void LookAtMatches() {
    for (int match; (match = output_.TakeMatch()) >= 0;) Matched(match);
  }

  // The program printed a line that the job waits for.
  void Matched(int number) {
    const std::vector<std::string>& on_log = spec_.start.on_log;
    if (number == static_cast<int>(on_log.size())) {
      if (ready_check_) MarkReady();
    } else if (log_rule_ < 0) {
      log_rule_ = number;
      LogInfo("a line of the program matches '{}'", on_log[static_cast<size_t>(number)]);
      if (running()) program_->Drain(grace_, 0);
    }
  }

  void CheckReady() {
    const StartMessage& start = spec_.start;
    ReadyCheckSpec check;
    check.how = start.ready;
    check.port = start.port;
    check.hosts = {"127.0.0.1", "::1"};
    if (!spec_.host.empty() && spec_.host != check.hosts[0]) check.hosts.push_back(spec_.host);
    check.env = Environment({});
    check.work_dir = start.work_dir;
    check.job_id = spec_.job_id;
    check.name = Name() + ".ready";
    check.isolation = spec_.isolation;
    const std::string within = FormatDuration(start.ready.timeout);
    ready_check_ = ReadyCheck::Start(
        loop_, std::move(check), [this] { MarkReady(); },
        [this, within](const std::string& why) {
          not_ready_ = "it was not ready within " + within + ": " + why;
          ready_check_.reset();
          Kill();
        });
  }

  void MarkReady() {
    ready_check_.reset();
    ready_ = true;
    calls_.on_change();
  }

  void WatchPorts() {
    if (spec_.ports.empty()) return;
    if (!host::ProcShowsOwnNamespace()) {
      if (spec_.start.attempt > 0) return;  // said before
      LogWarning(
          "/proc belongs to another PID namespace: whether other processes listen on the task's "
          "ports is not checked; mount /proc anew (`unshare --mount-proc`)");
      return;
    }
    port_watcher_ = PortConflictWatcher::Start(
        loop_, spec_.ports, [this] { return running() ? program_->Pids() : std::vector<pid_t>(); },
        [this](uint16_t port, const std::string& who) {
          conflict_.text = "its port " + std::to_string(port) + " is taken: " + who;
          port_watcher_.reset();
          calls_.on_change();
        });
  }

  void SampleLater() {
    sample_timer_ = loop_->After(kSampleEvery, [this] {
      sample_timer_ = 0;
      if (!running()) return;
      auto usage = program_->Sample();
      if (usage.ok()) usage_ = *usage;
      SampleActivity();
      SampleLater();
    });
  }

  void SampleActivity() {
    const Millis every(spec_.start.watch_ms);
    const TimePoint now = Now();
    if (every.count() <= 0 || now - looked_ < every - kSampleEvery / 2) return;
    looked_ = now;
    // Without kernel support network use counts as idle.
    const int64_t bytes = network_.Sample(program_->Pids()).value_or(0);
    activity_.Sample(now, usage_.cpu_seconds, bytes);
  }

  // ---- The end ----

  // An engine that signals all processes of a task may reach the program first: a good end is
  // reported once the launcher would have heard.
  void ProgramEnded(const host::ProcessExit& exit, bool settled = false) {
    if (exit.signaled_externally && !ordered_ && interrupted_.empty())
      interrupted_ = "its processes were told to stop by a signal";
    const bool good = exit.ok() && !ordered_ && interrupted_.empty();
    if (good && !settled && spec_.settle > Duration(0))
      return delayed_end_.Start(spec_.settle, [this, exit] { ProgramEnded(exit, true); });
    ended_ = true;
    ready_check_.reset();
    port_watcher_.reset();
    RemoveTaskDirectories(Paths());
    Log(output_.Finish());
    LookAtMatches();
    job::TaskEnd end = TaskEndOf(exit, spec_.start.memory_bytes);
    if (!not_ready_.empty() && !end.ok()) end = KilledEnd(SIGKILL, not_ready_);
    // Stopped because of a line that it printed: a good end then means nothing.
    if (log_rule_ >= 0 && end.ok()) end = KilledEnd(SIGTERM, "for a line that it printed");
    // The conflict may have ended it before the watcher looked.
    if (conflict_.text.empty() && !end.ok()) conflict_.text = DescribePortConflict(spec_.ports);
    if (conflict_.text.empty() && !end.ok() && spec_.trust_reported_conflict) {
      conflict_.text = DescribeReportedPortConflict(spec_.ports, output_.last_line(exit.process));
      conflict_.only_reported = !conflict_.text.empty();
    }
    if (processes_ > 1 && !end.ok()) end.process = exit.process;
    Finish(std::move(end), exit.process);
  }

  void Finish(job::TaskEnd end, int process = 0) {
    EndedMessage ended;
    ended.attempt = spec_.start.attempt;
    ended.end = std::move(end);
    ended.last_line = CleanText(output_.last_line(process), kLastLineBytes);
    ended.log_rule = log_rule_;
    ended.port_conflict = conflict_.text;
    ended.interrupted = interrupted_;
    calls_.on_end(std::move(ended));
  }

  // Constant after construction, but for spec_.cluster.
  net::Loop* const loop_;
  AttemptSpec spec_;
  const AttemptCallbacks calls_;
  const Duration grace_;
  const int processes_;

  TaskOutput output_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool ordered_ = false;     // the coordinator has asked it to end
  std::string interrupted_;  // another stop request, before that
  int log_rule_ = -1;        // index of the first on_log rule that matched
  std::string not_ready_;    // why it was killed before it was ready
  struct {
    std::string text;            // names the process that has a port of the task; or empty
    bool only_reported = false;  // by the program's own output
  } conflict_;
  bool ready_ = false;
  bool ended_ = false;
  host::Usage usage_;
  ActivityTracker activity_;
  host::NetworkMeter network_;
  TimePoint looked_;  // last activity sample
  struct {
    std::optional<TimePoint> at;
    int process = 0;  // its local rank
  } last_output_;
  net::Loop::Id sample_timer_ = 0;
  net::Loop::Id start_timer_ = 0;  // while the disk is full
  DelayedEnd delayed_end_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<ReadyCheck> ready_check_;
  std::unique_ptr<PortConflictWatcher> port_watcher_;
};

}  // namespace

std::unique_ptr<Attempt> Attempt::Make(net::Loop* loop, AttemptSpec spec,
                                       AttemptCallbacks callbacks) {
  return std::make_unique<TaskAttempt>(loop, std::move(spec), std::move(callbacks));
}

}  // namespace shoal::rendezvous
