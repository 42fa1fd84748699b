// Runs that continue a job which an earlier controller has admitted.

#include "controller/run/takeover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "controller/run/test_controller.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

JobEvent Numbered(JobEvent event, int64_t seq) {
  event.seq = seq;
  return event;
}

class TakeoverTest : public ControllerTest {
 protected:
  // Runs the job until its coordinator has reported `events`, then drops the controller.
  void RunUntilLost(const job::Job& job, std::vector<JobEvent> events) {
    bool told = false;
    on_connect_ = [this, events = std::move(events), &told] {
      coordinator_.callbacks.on_connected();
      for (const JobEvent& event : events) coordinator_.callbacks.on_event(event);
      told = true;
    };
    Begin(job);
    ASSERT_TRUE(loop_.RunUntil([&] { return told; }, kPatience));
    LoseController();
  }
  void LoseController() {
    run_.reset();
    on_connect_ = nullptr;
    states_.clear();
    notes_.clear();
    engine_.applied.clear();
    engine_.adopted = {{"coordinator", 0, 0, TaskPhase::kRunning, 1}};
  }
  int Count(const std::string& type) {
    const auto events = store_->ReadEvents(id_, 0, 1000);
    return static_cast<int>(std::count_if(events->begin(), events->end(),
                                          [&](const Event& event) { return event.type == type; }));
  }
};

TEST_F(TakeoverTest, EventsFollowTheLastStoredOneAndNoStateIsToldTwice) {
  RunUntilLost(FourTasks(), {Numbered(StateOf(JobState::kRunning), 7)});
  const std::string token = *ReadToken(home_.job_dir(id_));
  on_connect_ = [this] {
    for (int i = 0; i < 4; ++i) coordinator_.callbacks.on_event(Numbered(EndOf(i, 0), 8 + i));
    coordinator_.callbacks.on_event(Numbered(StateOf(JobState::kFinishing), 12));
    coordinator_.callbacks.on_event(Numbered(VerdictOf(JobState::kSucceeded, "all is well"), 13));
  };
  Start();
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(coordinator_.after_seq, 7);
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
  EXPECT_THAT(states_, ElementsAre("finishing"));
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(Count("running"), 1);
  EXPECT_EQ(Count("task"), 4);
  EXPECT_EQ(*ReadToken(home_.job_dir(id_)), token);
  ASSERT_EQ(engine_.applied.size(), 1u);  // starts what does not run
  EXPECT_EQ(engine_.applied[0].tasks.size(), 5u);
}

TEST_F(TakeoverTest, AVerdictThatCameWithoutAControllerIsRecordedWithResultsAndNewEndsOnly) {
  JobEvent result;
  result.type = JobEvent::Type::kResult;
  result.body = {{"loss", 0.5}};
  JobEvent stall;
  stall.type = JobEvent::Type::kMoving;  // is stored at once, with all events before it
  RunUntilLost(FourTasks(), {Numbered(StateOf(JobState::kRunning), 1), Numbered(result, 2),
                             Numbered(EndOf(0, 0), 3), Numbered(stall, 4)});
  rendezvous::Verdict verdict;
  verdict.state = JobState::kFailed;
  verdict.reason = "worker-1 exited with 7";
  verdict.tasks = {{"worker", 0, 1, job::Exited(0)}, {"worker", 1, 1, job::Exited(7)}};
  ASSERT_TRUE(WriteVerdict(home_.job_dir(id_), verdict).ok());
  engine_.adopted.clear();
  Start();
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kFailed);
  EXPECT_EQ(ended_->reason, "worker-1 exited with 7");
  EXPECT_EQ(Count("task"), 2);
  EXPECT_EQ(GetDoubleOr(store_->GetJob(id_)->result, "loss", 0), 0.5);
  EXPECT_THAT(engine_.applied, IsEmpty());
  EXPECT_THAT(engine_.stopped, ElementsAre(id_));
}

TEST_F(TakeoverTest, AScaledRoleKeepsItsSize) {
  job::Job job = FourTasks();
  job.roles[0].max_replicas = 9;
  JobEvent scaled;
  scaled.type = JobEvent::Type::kScaled;
  scaled.role = "worker";
  scaled.body = {{"replicas", 6}};
  scaled.text = "role worker is to have 6 tasks";
  JobEvent moving;
  moving.type = JobEvent::Type::kMoving;  // is stored at once, with all events before it
  RunUntilLost(
      job, {Numbered(StateOf(JobState::kRunning), 1), Numbered(scaled, 2), Numbered(moving, 3)});
  on_connect_ = [this] { Succeed(); };
  Start();
  ASSERT_TRUE(WaitForEnd());
  ASSERT_EQ(engine_.applied.size(), 1u);
  EXPECT_EQ(engine_.applied[0].tasks.size(), 7u);
  const auto events = store_->ReadEvents(id_, 0, 1000);
  EXPECT_TRUE(std::any_of(events->begin(), events->end(), [](const Event& event) {
    return GetStringOr(event.body, "text", "") == "role worker is to have 6 tasks";
  }));
}

TEST_F(TakeoverTest, AnEngineThatDoesNotAnswerIsAskedAgain) {
  RunUntilLost(FourTasks(), {Numbered(StateOf(JobState::kRunning), 1)});
  engine_.adopt_status = Unavailable("the cluster does not answer");
  on_connect_ = [this] { Succeed(); };
  Start();
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
  EXPECT_EQ(engine_.adoptions, 2);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("the cluster does not answer")));
}

// Admitted, but its controller died before it had made the directory: no process can exist.
TEST_F(TakeoverTest, AnAdmittedJobWithoutADirectoryIsStarted) {
  id_ = *Controller(options_).Submit(FourTasks());
  const std::vector<Event> admitted = {StateEvent({}, JobState::kAdmitted, "")};
  ASSERT_TRUE(store_->Append(id_, admitted, Durability::kWritten).ok());
  on_connect_ = [this] { Succeed(); };
  Start();
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
  EXPECT_EQ(engine_.adoptions, 0);
  EXPECT_THAT(states_, ElementsAre("starting", "running", "finishing"));
}

TEST_F(TakeoverTest, AKillDuringTheTakeoverEndsTheJob) {
  RunUntilLost(FourTasks(), {Numbered(StateOf(JobState::kRunning), 1)});
  engine_.adopt_status = Unavailable("the cluster does not answer");
  Start();
  ASSERT_TRUE(loop_.RunUntil([this] { return engine_.adoptions == 1; }, kPatience));
  run_->Kill("stopped by ada");
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kCancelled);
  EXPECT_EQ(ended_->reason, "stopped by ada");
  EXPECT_EQ(engine_.adoptions, 1);
}

// Events of the engine during the takeover are not lost.
TEST_F(TakeoverTest, ALauncherThatIsLostDuringTheTakeoverIsReported) {
  RunUntilLost(FourTasks(), {Numbered(StateOf(JobState::kRunning), 1)});
  engine_.adopt_status = Unavailable("the cluster does not answer");
  on_connect_ = [this] { Succeed(); };
  Start();
  ASSERT_TRUE(loop_.RunUntil([this] { return engine_.adoptions == 1; }, kPatience));
  engine_.EmitEvent("worker", TaskPhase::kLost, {-1, 9, false, "killed"}, 2);
  ASSERT_TRUE(WaitForEnd());
  EXPECT_THAT(coordinator_.received, ElementsAre("lost worker0.2 killed", "ack"));
}

}  // namespace
}  // namespace shoal::controller
