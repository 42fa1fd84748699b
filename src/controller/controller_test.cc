// A job's way through the controller, with an engine and a coordinator that do what a test says.

#include "controller/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "controller/process_identity.h"
#include "controller/sqlite_store.h"
#include "job/json.h"

namespace shoal::controller {
namespace {

using engine::TaskPhase;
using rendezvous::JobEvent;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kPatience = std::chrono::seconds(20);  // only a broken test waits so long

// An engine that makes nothing but remembers what it was asked.
class ScriptedEngine final : public engine::Engine {
 public:
  std::string name() const override { return "scripted"; }
  Result<engine::Capacity> GetCapacity() override { return capacity; }
  Status Apply(const engine::DesiredJob& desired) override {
    applied.push_back(desired);
    if (!apply_status.ok()) return apply_status;
    // What a coordinator does first.
    if (coordinator_comes_up) {
      return WriteFileAtomically(std::filesystem::path(desired.job_dir) / "coordinator.json", "{}",
                                 0600, false);
    }
    return Status::Ok();
  }
  std::unique_ptr<Watcher> Watch(const std::string&,
                                 std::function<void(const engine::TaskEvent&)> on_event) override {
    tell = std::move(on_event);
    return std::make_unique<Watcher>();
  }
  Status Stop(const std::string& id, std::chrono::milliseconds) override {
    stopped.push_back(id);
    return Status::Ok();
  }
  Result<std::vector<engine::TaskStatus>> Adopt(const std::string&, const std::string&) override {
    return adopted;
  }
  Result<engine::Endpoint> Dial(const std::string&) override {
    return engine::Endpoint{"127.0.0.1", 1};
  }
  Result<std::string> TaskLog(const std::string&, const std::string&, int, size_t) override {
    return task_log;
  }
  void Tell(const std::string& role, TaskPhase phase, engine::TaskEnd end = {},
            int incarnation = 0) {
    tell({"", role, 0, incarnation, phase, std::move(end)});
  }

  engine::Capacity capacity{4, int64_t{8} << 30, 0};
  bool coordinator_comes_up = true;
  Status apply_status;
  std::string task_log;
  std::vector<engine::TaskStatus> adopted;
  std::vector<engine::DesiredJob> applied;
  std::vector<std::string> stopped;
  std::function<void(const engine::TaskEvent&)> tell;
};

// The coordinator as its client sees it: the test speaks through `callbacks`.
struct ScriptedCoordinator {
  rendezvous::ClientCallbacks callbacks;
  bool connected = true;
  bool client_lives = false;
  std::vector<std::string> heard;
  std::function<void(const std::string&)> on_heard;  // may be empty

  void Hear(const std::string& command) {
    heard.push_back(command);
    if (on_heard) on_heard(command);
  }
};

class ScriptedClient final : public rendezvous::Client {
 public:
  explicit ScriptedClient(ScriptedCoordinator* coordinator) : coordinator_(coordinator) {
    coordinator_->client_lives = true;
  }
  ~ScriptedClient() override { coordinator_->client_lives = false; }
  bool connected() const override { return coordinator_->connected; }
  void Drain(const std::string& reason) override { coordinator_->Hear("drain " + reason); }
  void Stop(const std::string& reason) override { coordinator_->Hear("stop " + reason); }
  void Kill(const std::string& reason) override { coordinator_->Hear("kill " + reason); }
  void ReportLost(const std::string& role, int index, int incarnation,
                  const std::string& reason) override {
    coordinator_->Hear("lost " + role + std::to_string(index) + "." + std::to_string(incarnation) +
                       " " + reason);
  }
  void ReportRefused(const std::string& role, int, const std::string& reason) override {
    coordinator_->Hear("refused " + role + " " + reason);
  }
  void Suspend(const std::string& reason) override { coordinator_->Hear("suspend " + reason); }
  void Scale(const std::string& role, int replicas, const std::string&) override {
    coordinator_->Hear("scale " + role + std::to_string(replicas));
  }
  void Hold(bool held, const std::string& reason) override {
    coordinator_->Hear((held ? "hold " : "go on ") + reason);
  }
  void AckVerdict() override { coordinator_->Hear("ack"); }

 private:
  ScriptedCoordinator* const coordinator_;
};

JobEvent StateOf(JobState state) {
  JobEvent event;
  event.type = JobEvent::Type::kJob;
  event.job_state = state;
  return event;
}

JobEvent VerdictOf(JobState state, const std::string& reason) {
  JobEvent event;
  event.type = JobEvent::Type::kVerdict;
  event.verdict.state = state;
  event.verdict.reason = reason;
  return event;
}

JobEvent EndOf(int index, int exit_code) {
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
    options_.connect = [this](net::Loop*, rendezvous::ClientOptions,
                              rendezvous::ClientCallbacks callbacks) {
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
  // A job whose coordinator says, once it runs, that it is suspended.
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
  // A job of this process that has its place already: first-1.
  void PutAdmitted(Store* store, const std::string& engine, const job::Job& job) const {
    ASSERT_TRUE(
        store->Submit({"first-1", "first", engine, job::ToJson(job), options_.self, {}}).ok());
    const std::vector<Event> admitted = {StateEvent({}, JobState::kAdmitted, "")};
    ASSERT_TRUE(store->Append("first-1", admitted, Durability::kWritten).ok());
  }
  // A job that must wait until first-1, which has all the memory, has ended.
  void BeginBehindAnother(job::Job job) {
    job::Job big = FourTasks();
    big.roles[0].resources.memory_bytes = int64_t{2} << 30;
    PutAdmitted(store_.get(), "scripted", big);
    job.roles[0].resources.memory_bytes = int64_t{1} << 30;
    Begin(job);
    ASSERT_TRUE(loop_.RunUntil([this] { return !states_.empty(); }, kPatience));
    EXPECT_THAT(states_[0], HasSubstr("pending: "));
  }
  void EndTheOther() {
    const std::vector<Event> over = {EndedEvent({}, JobState::kFailed, "", {})};
    ASSERT_TRUE(store_->Append("first-1", over, Durability::kWritten).ok());
  }
  // The coordinator of a job whose tasks all succeed at once.
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

TEST_F(ControllerTest, JobGoesThroughAllStates) {
  on_connect_ = [this] { Succeed(); };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
  EXPECT_EQ(ended_->reason, "all is well");
  EXPECT_THAT(states_, ElementsAre("admitted", "starting", "running", "finishing"));
  EXPECT_THAT(coordinator_.heard, ElementsAre("ack"));
  EXPECT_THAT(engine_.stopped, ElementsAre(id_));  // nothing is left
  EXPECT_FALSE(coordinator_.client_lives);
  EXPECT_EQ(store_->GetJob(id_)->state, JobState::kSucceeded);
  EXPECT_EQ(store_->ListTasks(id_)->size(), 4u);
}

TEST_F(ControllerTest, FourTasksCostTwoSyncedCommits) {
  on_connect_ = [this] { Succeed(); };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(store_->counters().synced_commits, 2u);   // submitted; ended with all events
  EXPECT_EQ(store_->counters().written_commits, 2u);  // admitted; running
}

TEST_F(ControllerTest, JobDirectoryAndProcessesAreAsAgreed) {
  on_connect_ = [this] { Succeed(); };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  const std::filesystem::path dir = home_.job_dir(id_);
  EXPECT_EQ(std::filesystem::status(dir).permissions(), std::filesystem::perms(0700));
  EXPECT_EQ(std::filesystem::status(dir / "token").permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(ReadToken(dir)->size(), 64u);
  const Result<job::Job> written = job::FromJsonText(*ReadFile(dir / "job.json", 1 << 20));
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, FourTasks());
  ASSERT_EQ(engine_.applied.size(), 1u);
  const engine::DesiredJob& desired = engine_.applied[0];
  ASSERT_EQ(desired.tasks.size(), 5u);
  EXPECT_THAT(desired.tasks[0].argv,
              ElementsAre("/bin/shoal", "coordinator", "--job-dir", dir.string()));
  EXPECT_THAT(desired.tasks[4].argv,
              ElementsAre("/bin/shoal", "task", "--job-dir", dir.string(), "--role", "worker",
                          "--index", "3", "--incarnation", "{incarnation}"));
  for (const engine::DesiredTask& task : desired.tasks) {
    for (const std::string& word : task.argv) EXPECT_NE(word, *ReadToken(dir));
  }
}

TEST_F(ControllerTest, ResultsAreKept) {
  on_connect_ = [this] {
    JobEvent result;
    result.type = JobEvent::Type::kResult;
    result.body = {{"words_per_second", 5e6}, {"loss", 0.25}};
    coordinator_.callbacks.on_event(StateOf(JobState::kRunning));
    coordinator_.callbacks.on_event(result);
    coordinator_.callbacks.on_event(VerdictOf(JobState::kSucceeded, ""));
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(GetDoubleOr(ended_->result, "loss", 0), 0.25);
  EXPECT_EQ(GetDoubleOr(store_->GetJob(id_)->result, "words_per_second", 0), 5e6);
}

TEST_F(ControllerTest, RefusedCoordinatorFailsTheJobWithTheReason) {
  engine_.coordinator_comes_up = false;
  Begin(FourTasks());
  loop_.Post([this] {
    loop_.Post([this] {
      engine_.Tell("coordinator", TaskPhase::kRefused, {-1, 0, false, "fork: no processes left"});
    });
  });
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kFailed);
  EXPECT_THAT(ended_->reason, HasSubstr("fork: no processes left"));
  EXPECT_THAT(engine_.stopped, ElementsAre(id_));
}

TEST_F(ControllerTest, CoordinatorThatNeverComesUpIsExplainedByItsLastWords) {
  engine_.coordinator_comes_up = false;
  engine_.task_log = "first line\nshoal: port range is exhausted\n";
  Begin(FourTasks());
  loop_.Post([this] {
    loop_.Post([this] {
      for (int i = 0; i < 3; ++i)
        engine_.Tell("coordinator", TaskPhase::kEnded, {1, 0, false, ""}, i);
    });
  });
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kFailed);
  EXPECT_THAT(ended_->reason, HasSubstr("ended 3 times"));
  EXPECT_THAT(ended_->reason,
              HasSubstr("exited with code 1; it said: shoal: port range is exhausted"));
  EXPECT_EQ(notes_.size(), 2u);
}

TEST_F(ControllerTest, LostCoordinatorComesBackAndTheJobSucceeds) {
  on_connect_ = [this] {
    coordinator_.callbacks.on_connected();
    coordinator_.callbacks.on_event(StateOf(JobState::kRunning));
    engine_.Tell("coordinator", TaskPhase::kEnded, {-1, 9, false, ""});
    loop_.Post([this] {  // after the engine's word: the client has dialled again by itself
      Succeed();
    });
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("was killed by signal 9; it is being started again"),
                                  "the coordinator is back"));
}

TEST_F(ControllerTest, VerdictOfADeadCoordinatorIsRead) {
  on_connect_ = [this] {
    coordinator_.callbacks.on_event(StateOf(JobState::kRunning));
    rendezvous::Verdict verdict;
    verdict.state = JobState::kFailed;
    verdict.reason = "worker-2 exited with 7";
    verdict.tasks = {{"worker", 2, 1, job::Exited(7)}};
    ASSERT_TRUE(WriteFileAtomically(home_.job_dir(id_) / "verdict.json",
                                    ToText(rendezvous::VerdictToJson(verdict)))
                    .ok());
    engine_.Tell("coordinator", TaskPhase::kEnded, {-1, 9, false, ""});
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kFailed);
  EXPECT_EQ(ended_->reason, "worker-2 exited with 7");
  EXPECT_EQ(store_->ListTasks(id_)->at(0).end->exit_code, 7);
}

TEST_F(ControllerTest, UnreachableCoordinatorFailsTheJob) {
  on_connect_ = [this] { coordinator_.callbacks.on_closed(Unavailable("no answer for 30 s")); };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kFailed);
  EXPECT_THAT(ended_->reason, HasSubstr("cannot be reached: no answer for 30 s"));
}

TEST_F(ControllerTest, LostAndRefusedLaunchersAreReported) {
  on_connect_ = [this] {
    engine_.Tell("worker", TaskPhase::kEnded, {0, 0, false, ""}, 1);  // as it should
    engine_.Tell("worker", TaskPhase::kLost, {-1, 9, false, "killed"}, 2);
    engine_.Tell("worker", TaskPhase::kRefused, {-1, 0, false, "no memory"});
  };
  coordinator_.on_heard = [this](const std::string& command) {
    if (command.starts_with("refused"))
      coordinator_.callbacks.on_event(VerdictOf(JobState::kFailed, "no memory"));
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_THAT(coordinator_.heard,
              ElementsAre("lost worker0.2 killed", "refused worker no memory", "ack"));
}

TEST_F(ControllerTest, WhyTasksWaitIsToldOnceAndStandsInTheFailure) {
  const engine::TaskEnd no_place{-1, 0, false, "fits on no node now (0/2 nodes)"};
  on_connect_ = [&] {
    for (int i = 0; i < 3; ++i) engine_.Tell("worker", TaskPhase::kStarting, no_place);
    engine_.Tell("worker", TaskPhase::kStarting);  // an ordinary start
    // What an engine tells comes through the loop.
    loop_.Post([this] {
      coordinator_.callbacks.on_event(VerdictOf(JobState::kFailed, "1 task did not come in 20 s"));
    });
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_THAT(notes_, ElementsAre("worker 0 waits: fits on no node now (0/2 nodes)"));
  EXPECT_EQ(ended_->reason,
            "1 task did not come in 20 s; worker 0 waited: fits on no node now (0/2 nodes)");
}

TEST_F(ControllerTest, DrainLetsTheCoordinatorDecide) {
  on_connect_ = [this] {
    coordinator_.callbacks.on_event(StateOf(JobState::kRunning));
    run_->Drain("Ctrl-C");
  };
  coordinator_.on_heard = [this](const std::string& command) {
    if (command == "drain Ctrl-C")
      coordinator_.callbacks.on_event(VerdictOf(JobState::kCancelled, "Ctrl-C"));
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kCancelled);
}

TEST_F(ControllerTest, KillWithoutAConnectionEndsAtOnce) {
  on_connect_ = [this] {
    coordinator_.connected = false;
    run_->Kill("Ctrl-C");
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kCancelled);
  EXPECT_EQ(ended_->reason, "Ctrl-C");
  EXPECT_THAT(engine_.stopped, ElementsAre(id_));
}

TEST_F(ControllerTest, EngineThatCannotStartIsToldToTheUser) {
  engine_.apply_status = ResourceExhausted("no more processes");
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kFailed);
  EXPECT_EQ(ended_->reason, "no more processes");
}

TEST_F(ControllerTest, JobThatCanNeverFitIsRefused) {
  job::Job job = FourTasks();
  job.roles[0].resources.memory_bytes = int64_t{64} << 30;
  Begin(job);
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kFailed);
  EXPECT_FALSE(ended_->reason.empty());
  EXPECT_TRUE(engine_.applied.empty());
}

TEST_F(ControllerTest, SecondJobWaitsUntilTheFirstHasEnded) {
  job::Job big = FourTasks();
  big.roles[0].resources.memory_bytes = int64_t{1} << 30;  // 4 GiB of 8
  big.roles[0].replicas = 6;
  const std::unique_ptr<Store> other = std::move(*OpenSqliteStore(home_.database()));
  PutAdmitted(other.get(), "scripted", big);

  on_connect_ = [this] { Succeed(); };
  Begin(big);
  ASSERT_TRUE(loop_.RunUntil([this] { return !states_.empty(); }, kPatience));
  EXPECT_THAT(states_[0], HasSubstr("pending: "));
  EXPECT_TRUE(engine_.applied.empty());
  EXPECT_FALSE(store_->GetJob(id_)->reason.empty());

  const std::vector<Event> over = {EndedEvent({}, JobState::kFailed, "", {})};
  ASSERT_TRUE(other->Append("first-1", over, Durability::kWritten).ok());
  ASSERT_TRUE(WaitForEnd());  // the store told it
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
}

TEST_F(ControllerTest, AJobOfAnotherEngineTakesNothingOfThisOne) {
  job::Job big = FourTasks();
  big.roles[0].resources.memory_bytes = int64_t{2} << 30;
  PutAdmitted(store_.get(), "elsewhere", big);
  on_connect_ = [this] { Succeed(); };
  Begin(big);
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
}

TEST_F(ControllerTest, DrainOfAWaitingJobEndsItWithoutStartingAnything) {
  job::Job big = FourTasks();
  big.roles[0].resources.memory_bytes = int64_t{2} << 30;
  PutAdmitted(store_.get(), "scripted", big);
  Begin(big);
  ASSERT_TRUE(loop_.RunUntil([this] { return !states_.empty(); }, kPatience));
  run_->Drain("Ctrl-C");
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kCancelled);
  EXPECT_TRUE(engine_.applied.empty());
}

TEST_F(ControllerTest, ASuspendedJobHasNoOwnerAndGoesOnAsItWas) {
  Suspended();
  EXPECT_EQ(ended_->state, JobState::kSuspended);
  EXPECT_THAT(engine_.stopped, ElementsAre(id_));
  const JobRecord rests = *store_->GetJob(id_);
  EXPECT_EQ(rests.state, JobState::kSuspended);
  EXPECT_EQ(rests.reason, "for the night");
  EXPECT_EQ(rests.owner, ProcessIdentity{});
  const std::filesystem::path dir = home_.job_dir(id_);
  EXPECT_EQ(ReadWorkDir(dir), options_.work_dir);
  ASSERT_TRUE(WriteFileAtomically(dir / "verdict.json", "of the first life").ok());

  on_connect_ = [this] { Succeed(); };
  Resume();
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
  EXPECT_THAT(states_, ElementsAre("admitted", "starting", "running", "finishing"));
  EXPECT_FALSE(std::filesystem::exists(dir / "verdict.json"));
  EXPECT_EQ(*ReadFile(dir / "resumes", 64), "1\n");
  EXPECT_EQ(Controller(options_).Resume(id_).code(), Code::kFailedPrecondition);
}

TEST_F(ControllerTest, ASuspendedJobEndsOnceAndHoldsNothing) {
  Suspended();
  Controller controller(options_);
  ASSERT_TRUE(controller.EndSuspended(id_, "enough").ok());
  EXPECT_EQ(store_->GetJob(id_)->state, JobState::kCancelled);
  EXPECT_EQ(controller.EndSuspended(id_, "again").code(), Code::kFailedPrecondition);
  EXPECT_EQ(controller.Resume(id_).code(), Code::kFailedPrecondition);
}

TEST_F(ControllerTest, WhatIsResumedAndStillWaitsIsSuspendedAgainByCtrlC) {
  Suspended();
  job::Job big = FourTasks();
  big.roles[0].resources.memory_bytes = int64_t{2} << 30;  // all there is
  const NewJob other{"other-1", "other", "scripted", job::ToJson(big), options_.self, {}};
  ASSERT_TRUE(store_->Submit(other).ok());
  const std::vector<Event> admitted = {StateEvent({}, JobState::kAdmitted, "")};
  ASSERT_TRUE(store_->Append("other-1", admitted, Durability::kWritten).ok());
  Resume();
  run_->Drain("Ctrl-C");
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSuspended);
  EXPECT_TRUE(Controller(options_).Resume(id_).ok());
}

TEST_F(ControllerTest, WhatWaitsIsSuspendedAndResumedWithoutHavingBegun) {
  options_.work_dir = "/where/it/began";
  BeginBehindAnother(FourTasks());
  ASSERT_TRUE(Controller(options_).SuspendWaiting(id_, "for the night").ok());
  ASSERT_TRUE(WaitForEnd());  // who waited with it
  EXPECT_EQ(ended_->state, JobState::kSuspended);
  EXPECT_TRUE(engine_.applied.empty());
  EXPECT_THAT(engine_.stopped, ElementsAre());
  EXPECT_EQ(ReadWorkDir(home_.job_dir(id_)), options_.work_dir);
  EXPECT_EQ(Controller(options_).SuspendWaiting(id_, "again").code(), Code::kFailedPrecondition);

  EndTheOther();
  on_connect_ = [this] { Succeed(); };
  Resume();
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
}

TEST_F(ControllerTest, WhatWaitsIsWeighedAnewWhenItIsScaled) {
  job::Job job = FourTasks();
  job.roles[0].min_replicas = 1;
  BeginBehindAnother(job);
  const std::string role = job.roles[0].name;
  const int replicas = job.roles[0].replicas;
  EXPECT_THAT(Controller(options_).ScaleWaiting(id_, role, replicas + 1).message(),
              HasSubstr("expected from 1 to " + std::to_string(replicas)));
  EXPECT_FALSE(Controller(options_).ScaleWaiting(id_, "nobody", 1).ok());
  ASSERT_TRUE(Controller(options_).ScaleWaiting(id_, role, 1).ok());
  const auto scaled = job::FromJson(store_->GetJob(id_)->job);
  ASSERT_TRUE(scaled.ok());
  EXPECT_EQ(scaled->roles[0].replicas, 1);
  EXPECT_EQ(scaled->roles[0].most(), replicas);

  on_connect_ = [this] { Succeed(); };
  EndTheOther();
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
  ASSERT_FALSE(engine_.applied.empty());
  const auto& tasks = engine_.applied[0].tasks;
  EXPECT_EQ(
      std::count_if(tasks.begin(), tasks.end(), [&](const auto& t) { return t.role == role; }), 1);
  EXPECT_EQ(Controller(options_).ScaleWaiting(id_, role, 2).code(), Code::kFailedPrecondition);
}

}  // namespace
}  // namespace shoal::controller
