// Many jobs on one supervisor, with an engine that can be made to block and scripted coordinators.

#include "controller/supervisor/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "controller/recovery/reconcile.h"
#include "controller/run/test_controller.h"
#include "controller/store/supervisor_mark.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

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

TEST_F(SupervisorTest, JobsRunToTheirEndsAndOutliveTheirController) {
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(Submit("job" + std::to_string(i)));
  for (const std::string& id : ids) {
    const auto end = told_.AwaitEnd(id);
    ASSERT_TRUE(end) << id;
    EXPECT_EQ(end->state, JobState::kSucceeded);
    EXPECT_THAT(told_.StatesOf(id), UnorderedElementsAre("admitted", "starting", "running"));
    EXPECT_EQ(GetStringOr(store_->GetJob(id)->job, "on_controller_loss", ""), "keep");
    EXPECT_EQ(store_->GetJob(id)->engine, "gate");
  }
}

TEST_F(SupervisorTest, JobsWaitForMemoryInTheirOrder) {
  const std::string first = SubmitSized("long", 800);
  ASSERT_TRUE(told_.AwaitState(first, "running"));
  std::vector<std::string> waiting;
  for (int i = 0; i < 8; ++i) waiting.push_back(SubmitSized("wait", 600));
  const std::string last = SubmitSized("small", 1);  // it fits, but is not first
  ASSERT_TRUE(told_.AwaitState(last, "pending"));
  EXPECT_THAT(store_->GetJob(last)->state, JobState::kPending);

  // One of them is stopped, one suspended, one scaled to fewer tasks.
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Drain(waiting[2], "enough", done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(waiting[2]));
  EXPECT_EQ(store_->GetJob(waiting[2])->state, JobState::kCancelled);
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Suspend(waiting[3], "later", done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(waiting[3]));
  EXPECT_EQ(store_->GetJob(waiting[3])->state, JobState::kSuspended);
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Scale(waiting[4], "worker", 2, "", done); }).ok());

  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill(first, "enough", done); }).ok());
  // 2 × 600 GiB are more than there is at all: the fifth can never start.
  const auto refused = told_.AwaitEnd(waiting[4]);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->state, JobState::kFailed);
  EXPECT_THAT(refused->reason, HasSubstr("memory"));
  WallTime before{};
  for (const size_t i : {0, 1, 5, 6, 7}) {
    const auto end = told_.AwaitEnd(waiting[i]);
    ASSERT_TRUE(end) << i;
    EXPECT_EQ(end->state, JobState::kSucceeded);
    EXPECT_GE(end->started, before);
    before = end->started;
  }
  const auto end = told_.AwaitEnd(last);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->state, JobState::kSucceeded);
}

// The next supervisor counts what runs, and goes on with what waits.
TEST_F(SupervisorTest, AQueueIsTakenOver) {
  const std::string holds = SubmitSized("long", 800);
  ASSERT_TRUE(told_.AwaitState(holds, "running"));
  const std::string waits = SubmitSized("wait", 600);
  ASSERT_TRUE(told_.AwaitState(waits, "pending"));
  Restart();
  ASSERT_TRUE(supervisor_->AttachAll().ok());
  const std::string small = SubmitSized("small", 600);
  ASSERT_TRUE(told_.AwaitState(small, "pending"));
  EXPECT_EQ(store_->GetJob(waits)->state, JobState::kPending);
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill(holds, "enough", done); }).ok());
  for (const std::string& id : {waits, small}) {
    const auto end = told_.AwaitEnd(id);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->state, JobState::kSucceeded);
  }
}

// A command of another process that shares the state home.
TEST_F(SupervisorTest, AWaitingJobThatAnotherProcessEndsLeavesTheQueue) {
  const std::string holds = SubmitSized("long", 800);
  ASSERT_TRUE(told_.AwaitState(holds, "running"));
  const std::string waits = SubmitSized("wait", 600);
  ASSERT_TRUE(told_.AwaitState(waits, "pending"));
  ControllerOptions options;
  options.store = store_.get();
  options.home = home_;
  ASSERT_TRUE(Controller(options).EndWaiting(waits, "stopped").ok());
  const auto end = told_.AwaitEnd(waits);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->state, JobState::kCancelled);
}

// It gives back what it holds each time; the sixth failure is the job's.
TEST_F(SupervisorTest, AJobThatDoesNotGatherWaitsAgain) {
  const std::string id = SubmitSized("lonely", 600);
  const std::string other = SubmitSized("wait", 600);
  ASSERT_TRUE(told_.AwaitEnd(other));
  std::optional<JobRecord> end;
  for (int i = 0; i < 6; ++i) {
    end = told_.AwaitEnd(id);
    ASSERT_TRUE(end);
    const std::lock_guard lock(told_.mu);
    told_.ends.erase(id);
    if (job::IsFinal(end->state)) break;
    EXPECT_EQ(end->state, JobState::kSuspended);
    EXPECT_THAT(end->reason, HasSubstr("did not join within 5 min; it waits in the queue again"));
  }
  EXPECT_EQ(end->state, JobState::kFailed);
  EXPECT_EQ(end->reason, "worker 1 did not join within 5 min");
  int admissions = 0;
  const auto events = store_->ReadEvents(id, 0, 1000);
  ASSERT_TRUE(events.ok());
  for (const Event& event : *events) admissions += event.type == "admitted" ? 1 : 0;
  EXPECT_EQ(admissions, 6);
}

TEST_F(SupervisorTest, AnEngineThatDoesNotAnswerDelaysNoOtherJob) {
  const std::string slow = Submit("slow");
  engine_->AwaitApply(slow);
  const auto end = told_.AwaitEnd(Submit("quick"));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->state, JobState::kSucceeded);
  engine_->Open();
  ASSERT_TRUE(told_.AwaitEnd(slow));
}

TEST_F(SupervisorTest, AJobWhoseEngineDoesNotAnswerCanBeStopped) {
  const std::string slow = Submit("slow");
  engine_->AwaitApply(slow);
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill(slow, "stopped by ada", done); }).ok());
  const auto end = told_.AwaitEnd(slow);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->state, JobState::kCancelled);
}

TEST_F(SupervisorTest, JobsAreTakenOverByTheNextSupervisor) {
  const std::string id = Submit("long");
  ASSERT_TRUE(told_.AwaitState(id, "running"));
  const std::string ended = Submit("quick");
  ASSERT_TRUE(told_.AwaitEnd(ended));
  Restart();
  EXPECT_THAT(supervisor_->running(), IsEmpty());
  const auto attached = supervisor_->AttachAll();
  ASSERT_TRUE(attached.ok());
  EXPECT_THAT(*attached, ElementsAre(id));
  EXPECT_THAT(supervisor_->running(), ElementsAre(id));
  EXPECT_EQ(supervisor_->Attach(id).code(), Code::kFailedPrecondition);
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Drain(id, "stopped by ada", done); }).ok());
  const auto end = told_.AwaitEnd(id);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->state, JobState::kCancelled);
  EXPECT_EQ(end->reason, "stopped by ada");
  EXPECT_THAT(told_.StatesOf(id), UnorderedElementsAre("admitted", "starting", "running"));
}

TEST_F(SupervisorTest, JobsAreSuspendedAndResumed) {
  const std::string id = Submit("long");
  ASSERT_TRUE(told_.AwaitState(id, "running"));
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Suspend(id, "for the night", done); }).ok());
  // Also while the run that suspended it cleans up.
  ASSERT_TRUE(told_.AwaitEnd(id));
  EXPECT_EQ(store_->GetJob(id)->state, JobState::kSuspended);
  {
    const std::lock_guard lock(told_.mu);
    told_.states.clear();
    told_.ends.clear();
  }
  ASSERT_TRUE(Ask([&](auto done) { supervisor_->Resume(id, done); }).ok());
  ASSERT_TRUE(told_.AwaitState(id, "starting"));
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill(id, "enough", done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(id));
}

TEST_F(SupervisorTest, ScalingIsAnswered) {
  const std::string id = Submit("long");
  ASSERT_TRUE(told_.AwaitState(id, "running"));
  const auto scale = [&](int replicas) {
    return Ask([&](auto done) { supervisor_->Scale(id, "worker", replicas, "by ada", done); });
  };
  EXPECT_TRUE(scale(3).ok());
  const Status refused = scale(9);
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("at most 5"));
}

TEST_F(SupervisorTest, CommandsForOtherJobsSayWhy) {
  const std::string id = Submit("quick");
  ASSERT_TRUE(told_.AwaitEnd(id));
  const auto drain = [&](const std::string& job) {
    return Ask([&](auto done) { supervisor_->Drain(job, "", done); });
  };
  // The run is removed after its last callback.
  Status ended;
  for (ended = drain(id); ended.ok(); ended = drain(id)) {
  }
  EXPECT_EQ(ended.code(), Code::kFailedPrecondition);
  EXPECT_THAT(ended.message(), HasSubstr("has ended: succeeded"));
  EXPECT_EQ(drain("nothing-123").code(), Code::kNotFound);
  EXPECT_EQ(Ask([&](auto done) { supervisor_->Resume("nothing-123", done); }).code(),
            Code::kNotFound);
}

// Other commands of the same state home leave the jobs of a dead supervisor to the next one.
TEST_F(SupervisorTest, JobsOfADeadSupervisorAreNotRecordedAsFailed) {
  ProcessIdentity dead = *CurrentProcess();
  dead.pid = 1 << 22;  // beyond the greatest pid
  ASSERT_TRUE(MarkSupervisor(home_.root(), dead).ok());
  const json::object job = job::ToJson(Named("long"));
  ASSERT_TRUE(store_->Submit({"long-1", "long", "gate", job, dead, {}}).ok());
  ReconcileOptions options;
  options.store = store_.get();
  options.home = home_;
  options.self = *CurrentProcess();
  options.engine = [this](const std::string& name) { return engines_.Find(name); };
  const auto left = Reconcile(options);
  ASSERT_EQ(left->size(), 1u);
  EXPECT_TRUE(left->at(0).unattended);
  EXPECT_EQ(store_->GetJob("long-1")->state, JobState::kPending);
  ASSERT_TRUE(supervisor_->AttachAll().ok());
  ASSERT_TRUE(told_.AwaitState("long-1", "running"));
  EXPECT_FALSE(IsSupervisor(home_.root(), dead));  // its mark is not needed any more
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill("long-1", "enough", done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd("long-1"));
}

TEST_F(SupervisorTest, TheRecordNamesTheSubmission) {
  const auto id = supervisor_->Submit(
      Named("x"), {.engine = "gate", .team = "ads", .user = "ada", .labels = {{"project", "ctr"}}});
  ASSERT_TRUE(id.ok());
  const auto end = told_.AwaitEnd(*id);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->team, "ads");
  EXPECT_EQ(end->user, "ada");
  EXPECT_EQ(end->labels.at("project"), "ctr");
}

TEST_F(SupervisorTest, AnUnknownEngineIsNamed) {
  const auto id = supervisor_->Submit(Named("x"), {.engine = "moon"});
  EXPECT_EQ(id.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(id.status().message(), HasSubstr("got the engine moon"));
}

// ---- Jobs that wait for others -----------------------------------------------------------------

job::Job After(job::Job job, const std::vector<job::Dependency>& after) {
  job.triggers.after = after;
  return job;
}

TEST_F(SupervisorTest, AJobWaitsForTheOnesThatItNames) {
  const std::string first = Submit("long");
  ASSERT_TRUE(told_.AwaitState(first, "running"));
  const auto second = supervisor_->Submit(After(Named("second"), {{"long"}}), {.engine = "gate"});
  ASSERT_TRUE(second.ok()) << second.status().message();
  const auto third = supervisor_->Submit(
      After(Named("third"), {{*second}, {first, job::DependencyWhen::kEnded}}), {.engine = "gate"});
  ASSERT_TRUE(third.ok()) << third.status().message();
  ASSERT_TRUE(told_.AwaitState(*second, "pending"));
  ASSERT_TRUE(told_.AwaitState(*third, "pending"));
  std::promise<WhyWaits> why;
  supervisor_->Why(*second, [&](const WhyWaits& answer) { why.set_value(answer); });
  EXPECT_THAT(why.get_future().get().reason, HasSubstr("waits for " + first + ", which is "));
  EXPECT_EQ(store_->GetJob(*third)->state, JobState::kPending);
  EXPECT_THAT(store_->GetJob(*third)->reason, HasSubstr("and for 1 other job"));

  // The first one is cancelled: the second can never start, and so neither can the third.
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill(first, "enough", done); }).ok());
  const auto end = told_.AwaitEnd(*second);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->state, JobState::kCancelled);
  EXPECT_EQ(end->reason,
            "it was to start after " + first + " succeeded, which has been cancelled: enough");
  const auto last = told_.AwaitEnd(*third);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->state, JobState::kCancelled);
  EXPECT_THAT(last->reason, testing::StartsWith("it was to start after " + *second));
  EXPECT_EQ(store_->GetJob(*second)->started, WallTime());
}

TEST_F(SupervisorTest, AConditionCanBeTheFailureOrAnyEnd) {
  const std::string first = Submit("long");
  ASSERT_TRUE(told_.AwaitState(first, "running"));
  const auto on_failure = supervisor_->Submit(
      After(Named("on-failure"), {{first, job::DependencyWhen::kFailed}}), {.engine = "gate"});
  const auto always = supervisor_->Submit(
      After(Named("always"), {{first, job::DependencyWhen::kEnded}}), {.engine = "gate"});
  ASSERT_TRUE(on_failure.ok() && always.ok());
  ASSERT_TRUE(told_.AwaitState(*always, "pending"));
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill(first, "enough", done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(*always));
  EXPECT_EQ(store_->GetJob(*always)->state, JobState::kSucceeded);
  ASSERT_TRUE(told_.AwaitEnd(*on_failure));
  EXPECT_THAT(store_->GetJob(*on_failure)->reason, HasSubstr("been cancelled"));
  // What is over already decides at once.
  const auto late = supervisor_->Submit(After(Named("late"), {{*always}}), {.engine = "gate"});
  ASSERT_TRUE(late.ok());
  ASSERT_TRUE(told_.AwaitEnd(*late));
  EXPECT_EQ(store_->GetJob(*late)->state, JobState::kSucceeded);
  const auto never = supervisor_->Submit(After(Named("never"), {{first}}), {.engine = "gate"});
  EXPECT_EQ(never.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(never.status().message(), HasSubstr("the job would never start"));
}

TEST_F(SupervisorTest, AnUnknownJobOrOneOfAnotherTeamIsRefused) {
  const auto own = supervisor_->Submit(Named("long"), {.engine = "gate", .team = "red"});
  ASSERT_TRUE(own.ok());
  for (const std::string& name : {std::string("none"), *own, std::string("long")}) {
    const auto other =
        supervisor_->Submit(After(Named("other"), {{name}}), {.engine = "gate", .team = "blue"});
    EXPECT_EQ(
        other.status().message(),
        "after: got " + name +
            ", expected the ID or the name of a job of the team blue; `shoal jobs` lists them");
  }
  EXPECT_TRUE(
      supervisor_->Submit(After(Named("same"), {{"long"}}), {.engine = "gate", .team = "red"})
          .ok());
}

TEST_F(SupervisorTest, WaitingForAJobIsTakenOver) {
  const std::string first = Submit("long");
  ASSERT_TRUE(told_.AwaitState(first, "running"));
  const auto second = supervisor_->Submit(
      After(Named("second"), {{first, job::DependencyWhen::kEnded}}), {.engine = "gate"});
  ASSERT_TRUE(second.ok());
  const auto third = supervisor_->Submit(After(Named("third"), {{first}}), {.engine = "gate"});
  ASSERT_TRUE(third.ok());
  ASSERT_TRUE(told_.AwaitState(*third, "pending"));
  Restart();
  ASSERT_TRUE(supervisor_->AttachAll().ok());
  // The commands of waiting jobs go on to work.
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Suspend(*third, "later", done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(*third));
  EXPECT_EQ(store_->GetJob(*third)->state, JobState::kSuspended);
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Scale(*second, "worker", 2, "", done); }).ok());
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Kill(first, "enough", done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(*second));
  EXPECT_EQ(store_->GetJob(*second)->state, JobState::kSucceeded);
  // A resumed one waits again, and finds what has happened in the meantime.
  {
    const std::lock_guard lock(told_.mu);
    told_.ends.erase(*third);
  }
  EXPECT_TRUE(Ask([&](auto done) { supervisor_->Resume(*third, done); }).ok());
  ASSERT_TRUE(told_.AwaitEnd(*third));
  EXPECT_EQ(store_->GetJob(*third)->state, JobState::kCancelled);
}

// A takeover while no server ran and the other job ended.
TEST_F(SupervisorTest, AnEndWithoutAServerIsSeenByTheNext) {
  const std::string first = SubmitSized("long", 800);
  ASSERT_TRUE(told_.AwaitState(first, "running"));
  const std::string waits = SubmitSized("wait", 600);
  const auto second = supervisor_->Submit(After(Named("second"), {{waits}}), {.engine = "gate"});
  ASSERT_TRUE(second.ok());
  ASSERT_TRUE(told_.AwaitState(*second, "pending"));
  observation_.reset();
  supervisor_.reset();
  ControllerOptions options;
  options.store = store_.get();
  options.home = home_;
  ASSERT_TRUE(Controller(options).EndWaiting(waits, "stopped").ok());
  StartSupervisor();
  ASSERT_TRUE(supervisor_->AttachAll().ok());
  ASSERT_TRUE(told_.AwaitEnd(*second));
  EXPECT_THAT(store_->GetJob(*second)->reason, HasSubstr("been cancelled: stopped"));
}

}  // namespace
}  // namespace shoal::controller
