// A fake engine and a fake coordinator for tests of a job's run (controller_test.cc,
// job_run_test.cc).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "controller/run/controller.h"
#include "controller/store/process_identity.h"
#include "controller/store/sqlite_store.h"
#include "job/execution/job_dir.h"
#include "job/spec/json.h"

namespace shoal::controller {

using engine::TaskPhase;
using rendezvous::JobEvent;

inline constexpr Duration kPatience = std::chrono::seconds(20);  // timeout of a failing test

// An engine that starts nothing and records its calls.
class ScriptedEngine final : public engine::Engine {
 public:
  std::string name() const override { return "scripted"; }
  Result<engine::Capacity> GetCapacity() override { return capacity; }
  Result<engine::EntryPoint> FindEntryPoint(const std::string& image) override {
    asked_images.push_back(image);
    return entry_point;
  }
  Status Apply(const engine::DesiredJob& desired) override {
    applied.push_back(desired);
    if (!apply_status.ok()) return apply_status;
    // The file that a coordinator writes first.
    if (coordinator_comes_up) {
      return WriteFileAtomically(job::JobDir(desired.job_dir).coordinator(), "{}", 0600, false);
    }
    return Status::Ok();
  }
  std::unique_ptr<Watcher> Watch(const std::string&,
                                 std::function<void(const engine::TaskEvent&)> on_event) override {
    emit = std::move(on_event);
    return std::make_unique<Watcher>();
  }
  Status Stop(const std::string& id, std::chrono::milliseconds) override {
    stopped.push_back(id);
    if (on_stop) on_stop();
    return Status::Ok();
  }
  Result<std::vector<engine::TaskStatus>> Adopt(const std::string&, const std::string&) override {
    ++adoptions;
    if (!adopt_status.ok()) return std::exchange(adopt_status, Status::Ok());
    return adopted;
  }
  Result<engine::Endpoint> Dial(const std::string&) override {
    return engine::Endpoint{"127.0.0.1", 1};
  }
  Result<std::string> TaskLog(const std::string&, const std::string&, int, size_t) override {
    return task_log;
  }
  void EmitEvent(const std::string& role, TaskPhase phase, engine::TaskEnd end = {},
                 int incarnation = 0) {
    emit({"", role, 0, incarnation, phase, std::move(end)});
  }

  engine::Capacity capacity{4, int64_t{8} << 30, 0};
  engine::EntryPoint entry_point;
  std::vector<std::string> asked_images;
  bool coordinator_comes_up = true;
  Status apply_status;
  std::string task_log;
  std::vector<engine::TaskStatus> adopted;
  Status adopt_status;  // of the next Adopt alone
  int adoptions = 0;
  std::vector<engine::DesiredJob> applied;
  std::vector<std::string> stopped;
  std::function<void()> on_stop;  // may be empty
  std::function<void(const engine::TaskEvent&)> emit;
};

// The coordinator from its client's view; tests send events through `callbacks`.
struct ScriptedCoordinator {
  rendezvous::CoordinatorClientCallbacks callbacks;
  std::function<bool()> lives;  // the client's query
  int64_t after_seq = 0;        // the client's option
  bool connected = true;
  bool client_lives = false;
  std::vector<std::string> received;
  std::function<void(const std::string&)> on_received;  // may be empty

  void Receive(const std::string& command) {
    received.push_back(command);
    if (on_received) on_received(command);
  }
};

class ScriptedClient final : public rendezvous::CoordinatorClient {
 public:
  explicit ScriptedClient(ScriptedCoordinator* coordinator) : coordinator_(coordinator) {
    coordinator_->client_lives = true;
  }
  ~ScriptedClient() override { coordinator_->client_lives = false; }
  bool connected() const override { return coordinator_->connected; }
  void Drain(const std::string& reason) override { coordinator_->Receive("drain " + reason); }
  void Stop(const std::string& reason) override { coordinator_->Receive("stop " + reason); }
  void Kill(const std::string& reason) override { coordinator_->Receive("kill " + reason); }
  void ReportLost(const std::string& role, int index, int incarnation,
                  const std::string& reason) override {
    coordinator_->Receive("lost " + role + std::to_string(index) + "." +
                          std::to_string(incarnation) + " " + reason);
  }
  void ReportRefused(const std::string& role, int, const std::string& reason) override {
    coordinator_->Receive("refused " + role + " " + reason);
  }
  void Suspend(const std::string& reason) override { coordinator_->Receive("suspend " + reason); }
  void Scale(const std::string& role, int replicas, const std::string&) override {
    coordinator_->Receive("scale " + role + std::to_string(replicas));
  }
  void Hold(bool held, const std::string& reason) override {
    coordinator_->Receive((held ? "hold " : "go on ") + reason);
  }
  void AckVerdict() override { coordinator_->Receive("ack"); }

 private:
  ScriptedCoordinator* const coordinator_;
};

inline JobEvent StateOf(JobState state) {
  JobEvent event;
  event.type = JobEvent::Type::kJob;
  event.job_state = state;
  return event;
}

inline JobEvent VerdictOf(JobState state, const std::string& reason) {
  JobEvent event;
  event.type = JobEvent::Type::kVerdict;
  event.verdict.state = state;
  event.verdict.reason = reason;
  return event;
}

inline JobEvent EndOf(int index, int exit_code) {
  JobEvent event;
  event.type = JobEvent::Type::kTask;
  event.role = "worker";
  event.index = index;
  event.task_state = job::TaskState::kEnded;
  event.end = job::Exited(exit_code);
  return event;
}

class ControllerTest : public testing::Test {
 protected:
  ControllerTest() : place_(std::move(*TempDir::Create())), home_(place_.path()) {
    store_ = std::move(*OpenSqliteStore(home_.database()));
    options_.store = store_.get();
    options_.engine = &engine_;
    options_.home = home_;
    options_.program = "/bin/shoal";
    options_.self = *CurrentProcess();
    options_.connect = [this](net::Loop*, rendezvous::CoordinatorClientOptions options,
                              rendezvous::CoordinatorClientCallbacks callbacks) {
      coordinator_.lives = options.lives;
      coordinator_.after_seq = options.after_seq;
      coordinator_.callbacks = std::move(callbacks);
      loop_.Post([this] {
        if (coordinator_.client_lives && on_connect_) on_connect_();
      });
      return std::make_unique<ScriptedClient>(&coordinator_);
    };
  }

  static job::Job FourTasks() {
    job::Job job;
    job.name = "four";
    job.command = {"true"};
    job.roles.resize(1);
    job.roles[0].name = "worker";
    job.roles[0].replicas = 4;
    return job;
  }

  void Begin(const job::Job& job) {
    id_ = *Controller(options_).Submit(job);
    Start();
  }
  // Runs a job whose coordinator reports it suspended after its start.
  void Suspended() {
    options_.work_dir = "/where/it/began";
    on_connect_ = [this] {
      coordinator_.callbacks.on_event(StateOf(JobState::kRunning));
      coordinator_.callbacks.on_event(VerdictOf(JobState::kSuspended, "for the night"));
    };
    Begin(FourTasks());
    ASSERT_TRUE(WaitForEnd());
  }
  void Resume() {
    ended_.reset();
    states_.clear();
    ASSERT_TRUE(Controller(options_).Resume(id_).ok());
    EXPECT_EQ(store_->GetJob(id_)->owner, options_.self);
    Start();
  }
  void Start() {
    Controller controller(options_);
    Observer observer;
    observer.on_state = [this](JobState state, const std::string& why) {
      states_.push_back(std::string(job::NameOf(state)) + (why.empty() ? "" : ": " + why));
    };
    observer.on_note = [this](const std::string& text) { notes_.push_back(text); };
    observer.on_end = [this](const JobRecord& record) { ended_ = record; };
    auto run = controller.Start(&loop_, id_, std::move(observer));
    ASSERT_TRUE(run.ok()) << run.status().ToString();
    run_ = std::move(*run);
  }
  bool WaitForEnd() {
    return loop_.RunUntil([this] { return ended_.has_value(); }, kPatience);
  }
  // Stores an admitted job of this process: first-1.
  void PutAdmitted(Store* store, const std::string& engine, const job::Job& job) const {
    ASSERT_TRUE(
        store->Submit({"first-1", "first", engine, job::ToJson(job), options_.self, {}}).ok());
    const std::vector<Event> admitted = {StateEvent({}, JobState::kAdmitted, "")};
    ASSERT_TRUE(store->Append("first-1", admitted, Durability::kWritten).ok());
  }
  // Submits a job that must wait until first-1, which uses all the memory, has ended.
  void BeginBehindAnother(job::Job job) {
    job::Job big = FourTasks();
    big.roles[0].resources.memory_bytes = int64_t{2} << 30;
    PutAdmitted(store_.get(), "scripted", big);
    job.roles[0].resources.memory_bytes = int64_t{1} << 30;
    Begin(job);
    ASSERT_TRUE(loop_.RunUntil([this] { return !states_.empty(); }, kPatience));
    EXPECT_THAT(states_[0], testing::HasSubstr("pending: "));
  }
  void EndTheOther() {
    const std::vector<Event> over = {EndedEvent({}, JobState::kFailed, "", {})};
    ASSERT_TRUE(store_->Append("first-1", over, Durability::kWritten).ok());
  }
  // Sends the events of a job whose tasks all succeed at once.
  void Succeed() {
    coordinator_.callbacks.on_connected();
    coordinator_.callbacks.on_event(StateOf(JobState::kRunning));
    for (int i = 0; i < 4; ++i) coordinator_.callbacks.on_event(EndOf(i, 0));
    coordinator_.callbacks.on_event(StateOf(JobState::kFinishing));
    coordinator_.callbacks.on_event(VerdictOf(JobState::kSucceeded, "all is well"));
  }

  TempDir place_;
  StateHome home_;
  std::unique_ptr<Store> store_;
  ScriptedEngine engine_;
  ScriptedCoordinator coordinator_;
  ControllerOptions options_;
  net::Loop loop_;
  std::string id_;
  std::unique_ptr<JobRun> run_;
  std::function<void()> on_connect_;
  std::vector<std::string> states_;
  std::vector<std::string> notes_;
  std::optional<JobRecord> ended_;
};

}  // namespace shoal::controller
