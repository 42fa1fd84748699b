// A supervisor of many jobs, with an engine that can be made to block and scripted coordinators.
// Included by tests only.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "controller/run/test_controller.h"
#include "controller/supervisor/supervisor.h"

namespace shoal::controller {

// Starts nothing. Apply of a job blocks while its role "worker" has the argument "block" and the
// gate is shut. Thread-safe.
class GateEngine final : public engine::Engine {
 public:
  std::string name() const override { return "gate"; }
  Result<engine::Capacity> GetCapacity() override {
    return engine::Capacity{1000, int64_t{1} << 40, 0};
  }
  Status Apply(const engine::DesiredJob& desired) override {
    std::unique_lock lock(mu_);
    applied_.insert(desired.job_id);
    changed_.notify_all();
    if (desired.job_id.starts_with("slow"))
      changed_.wait(lock, [&] { return open_ || interrupted_.contains(desired.job_id); });
    if (interrupted_.contains(desired.job_id)) return Cancelled("interrupted");
    return WriteFileAtomically(job::JobDir(desired.job_dir).coordinator(), "{}", 0600, false);
  }
  std::unique_ptr<Watcher> Watch(const std::string&,
                                 std::function<void(const engine::TaskEvent&)>) override {
    return std::make_unique<Watcher>();
  }
  Status Stop(const std::string&, std::chrono::milliseconds) override { return Status::Ok(); }
  void Interrupt(const std::string& id) override {
    const std::lock_guard lock(mu_);
    interrupted_.insert(id);
    changed_.notify_all();
  }
  Result<std::vector<engine::TaskStatus>> Adopt(const std::string&, const std::string&) override {
    return std::vector<engine::TaskStatus>{{"coordinator", 0, 0, TaskPhase::kRunning, 1}};
  }
  Result<engine::Endpoint> Dial(const std::string&) override {
    return engine::Endpoint{"127.0.0.1", 1};
  }
  Result<std::string> TaskLog(const std::string&, const std::string&, int, size_t) override {
    return std::string();
  }
  void Open() {
    const std::lock_guard lock(mu_);
    open_ = true;
    changed_.notify_all();
  }
  void AwaitApply(const std::string& id) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return applied_.contains(id); });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool open_ = false;
  std::set<std::string> applied_;
  std::set<std::string> interrupted_;
};

// What observers were told, and the end of each job. Thread-safe.
struct Told {
  std::mutex mu;
  std::condition_variable changed;
  std::multimap<std::string, std::string> states;
  std::map<std::string, JobRecord> ends;

  JobsObserver observer() {
    JobsObserver to;
    to.on_state = [this](const std::string& id, JobState state, const std::string&) {
      const std::lock_guard lock(mu);
      states.emplace(id, job::NameOf(state));
      changed.notify_all();
    };
    to.on_end = [this](const std::string& id, const JobRecord& record) {
      const std::lock_guard lock(mu);
      ends[id] = record;
      changed.notify_all();
    };
    return to;
  }
  std::vector<std::string> StatesOf(const std::string& id) {
    const std::lock_guard lock(mu);
    std::vector<std::string> list;
    for (auto [it, last] = states.equal_range(id); it != last; ++it) list.push_back(it->second);
    return list;
  }
  bool AwaitState(const std::string& id, const std::string& state) {
    std::unique_lock lock(mu);
    return changed.wait_for(lock, kPatience, [&] {
      for (auto [it, last] = states.equal_range(id); it != last; ++it)
        if (it->second == state) return true;
      return false;
    });
  }
  std::optional<JobRecord> AwaitEnd(const std::string& id) {
    std::unique_lock lock(mu);
    if (!changed.wait_for(lock, kPatience, [&] { return ends.contains(id); })) return std::nullopt;
    return ends.at(id);
  }
};

// A coordinator of the supervisor's loop thread: reports that the job runs, and ends it as asked.
class SelfRunningClient final : public rendezvous::CoordinatorClient {
 public:
  SelfRunningClient(net::Loop* loop, const rendezvous::CoordinatorClientOptions& options,
                    rendezvous::CoordinatorClientCallbacks callbacks)
      : loop_(loop), callbacks_(std::move(callbacks)) {
    const bool forever = options.job_dir.find("/long") != std::string::npos;
    timer_ = loop->After(Duration(0), [this, forever, known = options.after_seq] {
      callbacks_.on_connected();
      Tell(StateOf(JobState::kRunning), 1, known);
      if (!forever) Tell(VerdictOf(JobState::kSucceeded, "all is well"), 2, known);
    });
    if (options.job_dir.find("/lonely") == std::string::npos) return;
    loop->Cancel(timer_);
    timer_ = loop->After(Duration(0), [this] {
      callbacks_.on_connected();
      JobEvent end = VerdictOf(JobState::kFailed, "worker 1 did not join within 5 min");
      end.verdict.gathered = false;
      callbacks_.on_event(end);
    });
  }
  ~SelfRunningClient() override { loop_->Cancel(timer_); }
  bool connected() const override { return true; }
  void Drain(const std::string& reason) override { EndSoon(JobState::kCancelled, reason); }
  void Stop(const std::string& reason) override { EndSoon(JobState::kCancelled, reason); }
  void Kill(const std::string& reason) override { EndSoon(JobState::kCancelled, reason); }
  void Suspend(const std::string& reason) override { EndSoon(JobState::kSuspended, reason); }
  void Scale(const std::string& role, int replicas, const std::string&) override {
    JobEvent answer;
    answer.type = replicas > 5 ? JobEvent::Type::kNote : JobEvent::Type::kScaled;
    answer.role = role;
    answer.body = {{"replicas", replicas}};
    if (replicas > 5) answer.text = rendezvous::ScaleRefusalText(role, "it may have at most 5");
    timer_ = loop_->After(Duration(0), [this, answer] { callbacks_.on_event(answer); });
  }
  void ReportLost(const std::string&, int, int, const std::string&) override {}
  void ReportRefused(const std::string&, int, const std::string&) override {}
  void Hold(bool, const std::string&) override {}
  void AckVerdict() override {}

 private:
  void Tell(JobEvent event, int64_t seq, int64_t known) {
    event.seq = seq;
    if (seq > known) callbacks_.on_event(event);
  }
  void EndSoon(JobState state, const std::string& reason) {
    timer_ = loop_->After(Duration(0),
                          [this, state, reason] { callbacks_.on_event(VerdictOf(state, reason)); });
  }

  net::Loop* const loop_;
  const rendezvous::CoordinatorClientCallbacks callbacks_;
  net::Loop::Id timer_ = 0;
};

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() : place_(std::move(*TempDir::Create())), home_(place_.path()) {
    store_ = std::move(*OpenSqliteStore(home_.database()));
    auto engine = std::make_unique<GateEngine>();
    engine_ = engine.get();
    engines_.Add("gate", std::move(engine));
    StartSupervisor();
  }

  void StartSupervisor() {
    SupervisorOptions options;
    options.store = store_.get();
    options.home = home_;
    options.engines = &engines_;
    options.program = "/bin/shoal";
    options.self = *CurrentProcess();
    options.requeue_delay = std::chrono::milliseconds(1);
    options.connect = [](net::Loop* loop, const rendezvous::CoordinatorClientOptions& with,
                         rendezvous::CoordinatorClientCallbacks callbacks) {
      return std::make_unique<SelfRunningClient>(loop, with, std::move(callbacks));
    };
    auto made = Supervisor::Start(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().message();
    supervisor_ = std::move(*made);
    observation_ = supervisor_->Observe(told_.observer());
  }
  void Restart() {
    observation_.reset();
    supervisor_.reset();
    StartSupervisor();
  }
  static job::Job Named(const std::string& name) {
    job::Job job;
    job.name = name;
    job.command = {"true"};
    job.roles.resize(1);
    job.roles[0].name = "worker";
    job.roles[0].max_replicas = 5;
    return job;
  }
  std::string Submit(const std::string& name) {
    const auto id = supervisor_->Submit(Named(name), {.engine = "gate"});
    EXPECT_TRUE(id.ok()) << id.status().message();
    return id.value_or("");
  }
  // The engine has 1 TiB in all.
  std::string SubmitSized(const std::string& name, int64_t gibibytes) {
    job::Job job = Named(name);
    job.roles[0].resources.memory_bytes = gibibytes << 30;
    const auto id = supervisor_->Submit(job, {.engine = "gate"});
    EXPECT_TRUE(id.ok()) << id.status().message();
    return id.value_or("");
  }
  // Executes a command and returns its answer.
  Status Ask(const std::function<void(Supervisor::Done)>& command) {
    std::promise<Status> answer;
    command([&answer](const Status& status) { answer.set_value(status); });
    auto future = answer.get_future();
    if (future.wait_for(kPatience) != std::future_status::ready) std::abort();
    return future.get();
  }

  TempDir place_;
  StateHome home_;
  std::unique_ptr<Store> store_;
  EngineRegistry engines_{std::vector<EngineInstance>(), {}};
  GateEngine* engine_ = nullptr;
  Told told_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<Supervisor::Observation> observation_;
};

}  // namespace shoal::controller
