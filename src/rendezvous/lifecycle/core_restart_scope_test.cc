// Restart scopes, the order of roles, and the job file's rules for ends: with a clock that the test
// controls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/lifecycle/core_driver.h"

namespace shoal::rendezvous {
namespace {

using testing::HasSubstr;

job::Job Scoped(int workers, int servers, job::RestartScope scope) {
  job::Job job = Make(workers, servers);
  for (job::Role& role : job.roles) role.restart.scope = scope;
  return job;
}

TEST(Scope, TheWholeJobStopsAndStartsTogetherInANewGeneration) {
  CoreDriver d(Scoped(2, 1, job::RestartScope::kJob));
  d.JoinAll();
  ASSERT_EQ(d.core.generation(), 1);
  d.End(1, job::Signaled(11));
  EXPECT_EQ(d.Count(Kind::kDrain, 1), 1);
  EXPECT_EQ(d.Count(Kind::kDrain, 2), 1);
  EXPECT_THAT(d.Text(Kind::kDrain),
              HasSubstr("started again with the job, as worker 0 was killed"));
  d.End(2, job::Signaled(15));
  d.Pass(Millis(2'000));
  EXPECT_EQ(d.core.generation(), 1) << "the server has not ended";
  EXPECT_EQ(d.Count(Kind::kStart), 0);
  d.End(3, job::Exited(0));  // saved, as it was asked to: that is no success
  EXPECT_EQ(d.core.generation(), 2);
  EXPECT_EQ(d.Count(Kind::kStart), 3);
  EXPECT_GE(d.Count(Kind::kDescribe), 1);
  for (int task = 0; task < 3; ++task) {
    EXPECT_EQ(d.core.state_of(task), TaskState::kRunning);
    EXPECT_EQ(d.core.attempt_of(task), 1);
  }
  d.End(1, job::Exited(0));
  d.End(2, job::Exited(0));
  d.End(3, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

TEST(Scope, TheFirstDeathIsCountedForTheLifeOfTheJobAndNamed) {
  job::Job job = Scoped(2, 0, job::RestartScope::kJob);
  job.roles[0].restart.limit = 2;
  CoreDriver d(job);
  d.JoinAll();
  for (int round = 0; round < 2; ++round) {
    // The other task dies of it before it is told, with the exit code of a program's own error.
    d.End(static_cast<MemberId>(1 + round), job::Signaled(9));
    d.End(static_cast<MemberId>(2 - round), job::Exited(1));
    d.Pass(Millis(2'000));
    d.Do(LauncherHeartbeat{1});
    d.Do(LauncherHeartbeat{2});
    ASSERT_FALSE(d.core.verdict());
    ASSERT_EQ(d.core.generation(), 2 + round);
  }
  d.End(2, job::Signaled(9));
  d.End(1, job::Signaled(15));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kFailed);
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 1 was killed by signal 9"));
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("the job was restarted 2 times already"));
}

TEST(Scope, ARoleRestartsAloneAndTheOthersRunOn) {
  CoreDriver d(Scoped(2, 2, job::RestartScope::kRole));
  d.JoinAll();
  d.End(3, job::Signaled(11));
  EXPECT_EQ(d.Count(Kind::kDrain), 1);
  EXPECT_EQ(d.Count(Kind::kDrain, 3), 1);
  d.End(4, job::Signaled(15));
  d.Pass(Millis(600));
  EXPECT_EQ(d.core.generation(), 2);
  EXPECT_EQ(d.core.attempt_of(2), 1);
  EXPECT_EQ(d.core.attempt_of(3), 1);
  EXPECT_EQ(d.core.attempt_of(0), 0);
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
}

TEST(Scope, WhoHasEndedWellIsKeptAndStartedAgainWithTheOthers) {
  CoreDriver d(Scoped(2, 0, job::RestartScope::kJob));
  d.JoinAll();
  d.End(1, job::Exited(0));
  EXPECT_EQ(d.Count(Kind::kAck), 1);
  EXPECT_EQ(d.Count(Kind::kRelease), 0);
  EXPECT_EQ(d.core.Cluster().roles[0].ended, std::vector<int>{0});
  d.End(2, job::Signaled(11));
  EXPECT_TRUE(d.core.Cluster().roles[0].ended.empty());
  d.Pass(Millis(600));
  EXPECT_EQ(d.Count(Kind::kStart), 2);
  EXPECT_EQ(d.core.attempt_of(0), 1);
  d.End(1, job::Exited(0));
  d.End(2, job::Exited(0));
  EXPECT_EQ(d.Count(Kind::kRelease), 2);
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

TEST(Scope, AStopDuringARestartEndsTheJob) {
  CoreDriver d(Scoped(2, 0, job::RestartScope::kJob));
  d.JoinAll();
  d.End(1, job::Signaled(11));
  d.Do(Command{StopMode::kStop, "enough"});
  d.End(2, job::Signaled(15));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kCancelled);
  EXPECT_EQ(d.core.generation(), 1);
}

TEST(Scope, ACoordinatorThatComesBackInTheMiddleFinishesTheRestart) {
  CoreDriver d(Scoped(2, 0, job::RestartScope::kJob));
  d.JoinAll();
  d.End(1, job::Signaled(11));
  CoordinatorCore again(d.core.job());
  ASSERT_TRUE(again.Restore(d.records).ok());
  again.Begin(d.now);
  again.Handle(LauncherJoined{11, "worker", 0, 0, "i1", 1, 0, false}, d.now);
  auto actions = again.Handle(LauncherJoined{12, "worker", 1, 0, "i2", 1, 0, true}, d.now);
  const auto drains = std::count_if(actions.begin(), actions.end(),
                                    [](const Action& one) { return one.kind == Kind::kDrain; });
  EXPECT_EQ(drains, 1) << "the order may have been lost";
  again.Handle(ProgramEnded{12, 0, job::Signaled(15), "", -1, ""}, d.now);
  again.Handle(Tick{}, d.now + Millis(1'000));
  EXPECT_EQ(again.generation(), 2);
  EXPECT_EQ(again.attempt_of(0), 1);
  EXPECT_EQ(again.state_of(1), TaskState::kRunning);
}

TEST(Theft, OfAPortStartsAllAgainWithOthersAndCountsAgainstNobody) {
  job::Job job = Make(2, 1);
  for (job::Role& role : job.roles) role.restart.limit = 0;
  CoreDriver d(job);
  d.JoinAll();
  for (int second = 0; second < 310; ++second) {  // longer than limits.gather
    d.Pass(Millis(1'000));
    for (const MemberId member : {1, 2, 3}) d.Do(LauncherHeartbeat{member});
  }
  d.Do(PortConflict{3, 0, "its port 4003 is taken: process 7 (nc) listens at 0.0.0.0"});
  EXPECT_EQ(d.Count(Kind::kDrain), 3);
  for (const Action& action : d.last) {
    if (action.kind == Kind::kDrain) {
      EXPECT_EQ(action.grace, Millis(500));
    } else if (action.kind == Kind::kWelcome) {
      EXPECT_TRUE(action.lease && action.member == 3);
    }
  }
  EXPECT_EQ(d.Count(Kind::kWelcome), 1);
  d.Do(PortConflict{3, 0, "told again"});
  EXPECT_EQ(d.Count(Kind::kRecord), 0);
  d.Pass(Millis(1'100));
  EXPECT_EQ(d.Count(Kind::kKill), 3) << "nobody talks to a stranger for longer than 2 s";
  for (const MemberId member : {1, 2, 3}) d.End(member, job::Signaled(9));
  EXPECT_EQ(d.core.generation(), 1) << "there is no new port yet";
  d.Do(PortsLeased{3, "h3", {5003}});
  EXPECT_EQ(d.core.generation(), 2);
  EXPECT_EQ(d.Count(Kind::kStart), 3);
  EXPECT_EQ(d.core.Cluster().roles[1].members[0].ports, std::vector<uint16_t>{5003});
  // A task that failed of it before the watcher looked.
  d.Do(ProgramEnded{3, 1, job::Exited(1), "", -1, "its port 5003 is taken: process 7 (nc)"});
  EXPECT_FALSE(d.core.verdict());
  EXPECT_EQ(d.Count(Kind::kDrain), 2);
  d.Do(PortsLeased{3, "h3", {6003}});
  d.End(1, job::Signaled(15));
  d.End(2, job::Signaled(15));
  EXPECT_EQ(d.core.generation(), 3);
  d.End(1, job::Exited(0));
  d.End(2, job::Exited(0));
  d.End(3, job::Exited(0));
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

TEST(Theft, WithoutEndFailsTheJob) {
  CoreDriver d(Make(1, 0));
  d.JoinAll();
  for (int round = 0; round < 50; ++round) {
    d.Do(PortConflict{1, round, "its port is taken"});
    d.End(1, job::Signaled(15));
    d.Do(PortsLeased{1, "h1", {static_cast<uint16_t>(5000 + round)}});
    ASSERT_EQ(d.core.generation(), round + 2);
  }
  d.Do(PortConflict{1, 50, "its port is taken: by process 7"});
  d.End(1, job::Signaled(15));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->reason,
            "ports of this job were taken 50 times; at last of worker 0: its port is taken: by "
            "process 7");
}

TEST(Order, AfterReadyEvenWhenItIsStartedAgain) {
  job::Job job = Make(1, 2);
  job.roles[0].after.roles = {"server"};
  job.roles[1].ready.by = job::ReadyBy::kTcp;
  CoreDriver d(job);
  d.JoinAll();
  EXPECT_EQ(d.core.generation(), 1);
  EXPECT_EQ(d.core.state_of(0), TaskState::kJoined);
  d.Do(ProgramReady{2, 0});
  EXPECT_EQ(d.core.state_of(0), TaskState::kJoined);
  d.Do(ProgramReady{3, 0});
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  d.Do(ProgramReady{3, 0});  // a repetition
  EXPECT_EQ(d.Count(Kind::kRecord), 0);
  // A worker that dies with its server waits for it.
  d.End(2, job::Signaled(11));
  d.End(1, job::Signaled(11));
  d.Pass(Millis(2'000));
  EXPECT_EQ(d.core.state_of(0), TaskState::kJoined);
  EXPECT_EQ(d.core.state_of(1), TaskState::kRunning);
  d.Do(ProgramReady{2, 0});  // of the attempt before
  EXPECT_EQ(d.core.state_of(0), TaskState::kJoined);
  d.Do(ProgramReady{2, 1});
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
}

TEST(Order, AChainStartsInOneStepWhereNobodyMakesItWait) {
  job::Job job = Make(1, 1);
  job.roles.push_back({});
  job.roles[2].name = "board";
  job.roles[0].after = {{"server"}, job::AfterWhen::kStarted};
  job.roles[1].after = {{"board"}, job::AfterWhen::kReady};
  CoreDriver d(job);
  d.JoinAll();
  EXPECT_EQ(d.Count(Kind::kStart), 3);
}

TEST(Order, AfterTheEndOfAnother) {
  job::Job job = Make(2, 0);
  job.roles.push_back({});
  job.roles[1].name = "export";
  job.roles[1].after = {{"worker"}, job::AfterWhen::kEnded};
  job.success.roles = {"worker", "export"};
  CoreDriver d(job);
  d.JoinAll();
  EXPECT_EQ(d.Count(Kind::kStart), 2);
  d.End(1, job::Exited(0));
  EXPECT_EQ(d.Count(Kind::kStart), 0);
  d.End(2, job::Exited(0));
  EXPECT_EQ(d.Count(Kind::kStart, 2), 1);
  d.End(3, job::Exited(0));
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

TEST(Order, WhoNeverCameToStartIsNotWaitedForAtTheEnd) {
  job::Job job = Make(1, 1);
  job.roles[1].follows.clear();
  job.roles[1].after = {{"worker"}, job::AfterWhen::kEnded};
  CoreDriver d(job);
  d.JoinAll();
  d.End(1, job::Exited(3));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kFailed);
}

TEST(Rules, OfTheFileDecide) {
  job::Job job = Make(3, 1);
  job.roles[0].on_exit = {{"7", job::EndAction::kRetry}, {"9", job::EndAction::kIgnore}};
  job.roles[0].on_log = {{"*corrupt*", job::EndAction::kFail}};
  job.roles[1].on_exit = {{"5", job::EndAction::kRestartJob}};
  CoreDriver d(job);
  d.JoinAll();
  d.End(1, job::Exited(9));
  EXPECT_EQ(d.core.state_of(0), TaskState::kEnded);
  EXPECT_EQ(d.core.Cluster().roles[0].ended, std::vector<int>{0});
  d.End(2, job::Exited(7));
  d.Pass(Millis(600));
  EXPECT_EQ(d.core.attempt_of(1), 1);
  d.End(4, job::Exited(5));
  EXPECT_EQ(d.Count(Kind::kDrain), 2);
  d.End(2, job::Signaled(15));
  d.End(3, job::Signaled(15));
  d.Pass(Millis(1'000));
  EXPECT_EQ(d.core.generation(), 2);
  EXPECT_EQ(d.core.attempt_of(0), 1) << "all of the job, who has ended too";
  d.Do(ProgramEnded{3, 1, job::Signaled(15), "", 0, ""});
  for (const MemberId member : {1, 2, 4}) d.End(member, job::Signaled(15));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kFailed);
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("its line that matches '*corrupt*'"));
}

}  // namespace
}  // namespace shoal::rendezvous
