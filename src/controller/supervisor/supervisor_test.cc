// Many jobs on one supervisor.

#include "controller/supervisor/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/recovery/reconcile.h"
#include "controller/store/supervisor_mark.h"
#include "controller/supervisor/test_supervisor.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

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

}  // namespace
}  // namespace shoal::controller
