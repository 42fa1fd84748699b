// Runs of jobs with a scripted engine and coordinator.

#include "controller/run/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/fault_injection.h"
#include "controller/run/test_controller.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(ControllerTest, JobGoesThroughAllStates) {
  on_connect_ = [this] { Succeed(); };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kSucceeded);
  EXPECT_EQ(ended_->reason, "all is well");
  EXPECT_THAT(states_, ElementsAre("admitted", "starting", "running", "finishing"));
  EXPECT_THAT(coordinator_.received, ElementsAre("ack"));
  EXPECT_THAT(engine_.stopped, ElementsAre(id_));  // nothing is left
  EXPECT_FALSE(coordinator_.client_lives);
  EXPECT_EQ(store_->GetJob(id_)->state, JobState::kSucceeded);
  EXPECT_EQ(store_->ListTasks(id_)->size(), 4u);
}

TEST_F(ControllerTest, AnImagesOwnEntryPointIsAskedForOnceAndRecorded) {
  engine_.entry_point = {{"/entry.sh", "-x"}, {"serve"}};
  job::Job job = FourTasks();
  job.image = "acme/train:7";
  job.command.clear();
  for (job::Role& role : job.roles) role.command.clear();
  job.roles[0].args = {"--lr", "0.1"};
  job.roles.push_back(job.roles[0]);
  job.roles.back().name = "other";
  job.roles.back().args.clear();
  on_connect_ = [this] { Succeed(); };
  Begin(job);
  ASSERT_TRUE(WaitForEnd());
  EXPECT_THAT(engine_.asked_images, ElementsAre("acme/train:7"));
  const auto stored = job::FromJson(store_->GetJob(id_)->job);
  ASSERT_TRUE(stored.ok());
  EXPECT_THAT(stored->roles[0].command, ElementsAre("/entry.sh", "-x", "--lr", "0.1"));
  EXPECT_THAT(stored->roles[1].command, ElementsAre("/entry.sh", "-x", "serve"));
  EXPECT_TRUE(stored->roles[0].args.empty());
}

TEST_F(ControllerTest, FourTasksCostTwoSyncedCommits) {
  on_connect_ = [this] { Succeed(); };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(store_->counters().synced_commits, 2u);   // submitted; ended with all events
  EXPECT_EQ(store_->counters().written_commits, 2u);  // admitted; running
}

// Otherwise the command reports an error while the job waits without a controller.
TEST_F(ControllerTest, AJobIsSubmittedOnceWhereTheDiskFailsForAMoment) {
  for (const char* fault : {"store.commit=EIO@1", "store.committed=EIO@1"}) {
    ASSERT_TRUE(SetFaults(fault).ok());
    const Result<std::string> id = Controller(options_).Submit(FourTasks());
    ASSERT_TRUE(SetFaults("").ok());
    ASSERT_TRUE(id.ok()) << fault << ": " << id.status().message();
    EXPECT_EQ(store_->GetJob(*id)->state, JobState::kPending) << fault;
  }
  EXPECT_EQ(store_->ListJobs({})->size(), 2u);
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
      engine_.EmitEvent("coordinator", TaskPhase::kRefused,
                        {-1, 0, false, "fork: no processes left"});
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
        engine_.EmitEvent("coordinator", TaskPhase::kEnded, {1, 0, false, ""}, i);
    });
  });
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ended_->state, JobState::kFailed);
  EXPECT_THAT(ended_->reason, HasSubstr("ended 3 times"));
  EXPECT_THAT(ended_->reason,
              HasSubstr("exited with code 1; last output: shoal: port range is exhausted"));
  EXPECT_EQ(notes_.size(), 2u);
}

TEST_F(ControllerTest, LostCoordinatorComesBackAndTheJobSucceeds) {
  on_connect_ = [this] {
    coordinator_.callbacks.on_connected();
    coordinator_.callbacks.on_event(StateOf(JobState::kRunning));
    engine_.EmitEvent("coordinator", TaskPhase::kEnded, {-1, 9, false, ""});
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
    engine_.EmitEvent("coordinator", TaskPhase::kEnded, {-1, 9, false, ""});
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
    engine_.EmitEvent("worker", TaskPhase::kEnded, {0, 0, false, ""}, 1);  // as it should
    engine_.EmitEvent("worker", TaskPhase::kLost, {-1, 9, false, "killed"}, 2);
    engine_.EmitEvent("worker", TaskPhase::kRefused, {-1, 0, false, "no memory"});
  };
  coordinator_.on_received = [this](const std::string& command) {
    if (command.starts_with("refused"))
      coordinator_.callbacks.on_event(VerdictOf(JobState::kFailed, "no memory"));
  };
  Begin(FourTasks());
  ASSERT_TRUE(WaitForEnd());
  EXPECT_THAT(coordinator_.received,
              ElementsAre("lost worker0.2 killed", "refused worker no memory", "ack"));
}

TEST_F(ControllerTest, WhyTasksWaitIsToldOnceAndStandsInTheFailure) {
  const engine::TaskEnd no_place{-1, 0, false, "fits on no node now (0/2 nodes)"};
  on_connect_ = [&] {
    for (int i = 0; i < 3; ++i) engine_.EmitEvent("worker", TaskPhase::kStarting, no_place);
    engine_.EmitEvent("worker", TaskPhase::kStarting);  // an ordinary start
    // Engine events arrive through the loop.
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
  coordinator_.on_received = [this](const std::string& command) {
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
