// The coordinator's rules, one by one, with a clock that the test controls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/coordinator/record_events.h"
#include "rendezvous/lifecycle/core_driver.h"

namespace shoal::rendezvous {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Core, StartsNobodyBeforeAllHaveJoinedAndThenInIndexOrder) {
  CoreDriver d(Make(2, 1));
  d.Join(1, "worker", 1);
  d.Join(2, "server", 0);
  EXPECT_EQ(d.core.generation(), 0);
  d.Do(LauncherJoined{3, "worker", 0, 0, "i3", 0, -1, false});
  EXPECT_EQ(d.Count(Kind::kStart), 0);
  d.Do(PortsLeased{3, "h3", {}});
  EXPECT_EQ(d.Count(Kind::kStart), 3);
  EXPECT_EQ(d.core.generation(), 1);
  const auto cluster = d.core.Cluster();
  EXPECT_EQ(cluster.FindRole("worker")->members[0].host, "h3");
  EXPECT_EQ(cluster.FindRole("worker")->members[1].host, "h1");
  EXPECT_EQ(cluster.FindRole("server")->members[0].ports, std::vector<uint16_t>{4002});
}

TEST(Core, GatheringFailsNamingWhoIsMissing) {
  CoreDriver d(Make(3, 0));
  d.Join(1, "worker", 0);
  d.Do(LauncherHeartbeat{1});
  for (int i = 0; i < 310; ++i) {
    d.Pass(Millis(1000));
    d.Do(LauncherHeartbeat{1});
  }
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kFailed);
  EXPECT_FALSE(d.core.verdict()->gathered);
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 1 and 1 other task did not join"));
  EXPECT_THAT(d.core.verdict()->reason, Not(HasSubstr("controller")));
}

TEST(Core, GatheringWithoutAControllerSaysSo) {
  job::Job job = Make(2, 0);
  job.on_controller_loss = job::OnControllerLoss::kKeep;
  job.limits.gather = Millis(20'000);
  CoreDriver d(job);
  d.Do(ControllerDisconnected{});
  d.Pass(Millis(20'000));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_THAT(d.core.verdict()->reason,
              HasSubstr("the controller, which has them started, is gone"));
}

// A controller that is paused before it connects is waited for while it lives.
TEST(Core, AControllerThatLivesIsWaitedFor) {
  job::Job job = Make(1, 0);
  job.limits.gather = Millis(15'000);
  CoreDriver d(job, false);
  d.Pass(Millis(9'000));
  d.Do(ControllerAlive{});
  d.Pass(Millis(9'000));
  EXPECT_FALSE(d.core.verdict());
  d.Pass(Millis(1'500));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, job::JobState::kCancelled);
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("no controller was connected for 10.0 s"));
}

// Its processes may be paused: only the engine can make room for another launcher.
TEST(Core, ALauncherThatIsSilentIsToBeReplaced) {
  for (const bool silent : {true, false}) {
    CoreDriver d(Make(1, 0));
    d.JoinAll();
    if (silent) {
      d.Pass(Millis(31'000));
    } else {
      d.Do(LauncherLost{"worker", 0, 0, "its pod was evicted"});
    }
    const auto unplaced =
        std::find_if(d.records.begin(), d.records.end(), [](const JournalRecord& record) {
          return record.kind == JournalRecord::Kind::kLauncherLost;
        });
    ASSERT_NE(unplaced, d.records.end());
    const JobEvent event = *EventFromJson(
        EventToJson(*EventOf(*JournalRecordFromText(JournalRecordToText(*unplaced)), d.core)));
    EXPECT_EQ(event.will_restart, silent);
    EXPECT_EQ(event.task_state, job::TaskState::kCreated);
  }
}

CoreLimits VerdictLimits(bool holds) {
  CoreLimits limits;
  limits.holds_verdict = holds;
  limits.linger = Millis(600'000);
  return limits;
}

// A job of one running task whose controller left `before` ago.
struct DriverWithoutController : CoreDriver {
  DriverWithoutController(bool holds, Millis before)
      : CoreDriver(Make(1, 0), true, {}, 0, VerdictLimits(holds)) {
    Join(1, "worker", 0);
    Do(ControllerDisconnected{});
    Pass(before);
  }
};

// A controller that cannot read the verdict from a file gets it when it reconnects.
TEST(Core, AVerdictThatIsHeldWaitsForAControllerThatWentBeforeIt) {
  for (const bool holds : {false, true}) {
    DriverWithoutController d(holds, Millis(4'000));
    d.End(1, job::Exited(0));
    ASSERT_TRUE(d.core.verdict());
    EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
    d.Pass(Millis(60'000));
    d.Do(LauncherDisconnected{1});
    EXPECT_EQ(d.Count(Kind::kExit), holds ? 0 : 1);
    d.Do(ControllerConnected{});
    d.Do(VerdictAcknowledged{});
    EXPECT_EQ(d.Count(Kind::kExit), holds ? 1 : 0);
  }
}

TEST(Core, AVerdictForTheLackOfAControllerWaitsForNobody) {
  DriverWithoutController d(true, CoreLimits().controller_loss);
  d.End(1, job::Signaled(15));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kCancelled);
  d.Do(LauncherDisconnected{1});
  EXPECT_EQ(d.Count(Kind::kExit), 1);
}

TEST(Core, OneHolderAPlace) {
  CoreDriver d(Make(1, 0));
  d.Join(1, "worker", 0, 0);
  d.Do(LauncherJoined{2, "worker", 0, 1, "i2", 0, -1, false});
  EXPECT_EQ(d.Count(Kind::kWait), 1);
  d.Do(LauncherJoined{3, "worker", 7, 0, "i3", 0, -1, false});
  EXPECT_EQ(d.Count(Kind::kRefuse), 1);
  // A later incarnation and the end of the old one's connection: known dead, at once.
  d.Do(LauncherDisconnected{1});
  EXPECT_EQ(d.Count(Kind::kWelcome), 1);
  EXPECT_EQ(d.core.MemberOf(0), 2u);
  d.Do(LauncherJoined{4, "worker", 0, 0, "i4", 0, -1, false});
  EXPECT_EQ(d.Count(Kind::kRefuse), 1);  // an older one
}

TEST(Core, ANewcomerOfTheSameIncarnationWaitsUntilTheOldOneIsDead) {
  CoreDriver d(Make(1, 0));
  d.JoinAll();
  d.Do(LauncherJoined{2, "worker", 0, 0, "other", 0, -1, false});
  d.Do(LauncherDisconnected{1});
  EXPECT_EQ(d.core.MemberOf(0), 0u);
  d.Pass(Millis(29'000));
  EXPECT_EQ(d.core.MemberOf(0), 0u);
  d.Pass(Millis(1'500));
  EXPECT_EQ(d.core.MemberOf(0), 2u);
}

TEST(Core, FollowersAreDrainedInTheVeryStepOfTheLastEndWellOrBadly) {
  for (const int code : {0, 3}) {
    CoreDriver d(Make(2, 2));
    d.JoinAll();
    d.End(1, job::Exited(0));
    EXPECT_EQ(d.Count(Kind::kDrain), 0);
    d.End(2, job::Exited(code));
    EXPECT_EQ(d.Count(Kind::kDrain, 2), 1);
    EXPECT_EQ(d.Count(Kind::kDrain, 3), 1);
    d.End(3, job::Signaled(15));
    d.End(4, job::Exited(0));
    ASSERT_TRUE(d.core.verdict());
    EXPECT_EQ(d.core.verdict()->state, code == 0 ? JobState::kSucceeded : JobState::kFailed);
  }
}

// Otherwise a parameter server would look for seconds for others that take its rows.
TEST(Core, AFollowerIsToldThatTheJobEndsBeforeItIsDrained) {
  for (const bool stopped : {false, true}) {
    CoreDriver d(Make(2, 2));
    d.JoinAll();
    d.End(1, job::Exited(0));
    EXPECT_FALSE(d.core.Cluster().ending);
    if (stopped) d.Do(Command{StopMode::kStop, "Ctrl-C"});
    if (!stopped) d.End(2, job::Exited(3));
    EXPECT_TRUE(d.core.Cluster().ending);
    for (const int server : {2, 3}) {
      std::vector<Kind> orders;
      for (const Action& one : d.last) {
        if (one.task == server && one.kind != Kind::kRecord) orders.push_back(one.kind);
      }
      EXPECT_EQ(orders, (std::vector<Kind>{Kind::kDescribe, Kind::kDrain}));
    }
  }
}

// So that it can distinguish a stop by the job from one by something else.
TEST(Core, AWorkerOfOursIsToldThatTheJobEndsBeforeItIsDrained) {
  for (const job::Framework framework : {job::Framework::kShoal, job::Framework::kGeneric}) {
    job::Job job = Make(2, 0);
    job.framework = framework;
    CoreDriver d(std::move(job));
    d.JoinAll();
    d.Do(Command{StopMode::kStop, "Ctrl-C"});
    std::vector<Kind> orders;
    for (const Action& one : d.last) {
      if (one.task == 0 && one.kind != Kind::kRecord) orders.push_back(one.kind);
    }
    const bool reads = framework == job::Framework::kShoal;
    EXPECT_EQ(orders, reads ? (std::vector<Kind>{Kind::kDescribe, Kind::kDrain})
                            : (std::vector<Kind>{Kind::kDrain}));
  }
}

TEST(Core, AFollowerIsNotStoppedForATaskThatWillBeRestarted) {
  CoreDriver d(Make(1, 1));
  d.JoinAll();
  d.End(1, job::Signaled(11));
  EXPECT_EQ(d.Count(Kind::kDrain), 0);
  EXPECT_EQ(d.Count(Kind::kStart), 0);
  d.Pass(Millis(600));
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  EXPECT_EQ(d.core.attempt_of(0), 1);
}

TEST(Core, KilledAtTheGraceAndGivenUpAfterThat) {
  CoreDriver d(Make(1, 1));
  d.JoinAll();
  d.End(1, job::Exited(0));
  const Millis drained = d.now;
  while (d.Count(Kind::kKill) == 0) {
    d.Do(LauncherHeartbeat{2});
    d.Pass(Millis(100));
    ASSERT_LT(d.now, Millis(20'000));
  }
  EXPECT_GE(d.now - drained, d.core.job().limits.stop_grace);
  EXPECT_LE(d.now - drained, d.core.job().limits.stop_grace + Millis(100));
  for (int i = 0; i < 60; ++i) {
    d.Do(LauncherHeartbeat{2});
    d.Pass(Millis(100));
  }
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

TEST(Core, RestartsBackOffAndEndAtTheLimit) {
  CoreDriver d(Make(1, 0));
  d.JoinAll();
  for (const int wait : {500, 1000, 2000}) {
    d.End(1, job::Signaled(9));
    EXPECT_EQ(d.core.state_of(0), TaskState::kJoined);
    d.Pass(Millis(wait - 1));
    EXPECT_EQ(d.core.state_of(0), TaskState::kJoined);
    d.Pass(Millis(1));
    EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
    d.Do(LauncherHeartbeat{1});
  }
  d.End(1, job::Signaled(9), "goodbye");
  ASSERT_TRUE(d.core.verdict());
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 0 was killed by"));
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("the limit is 3"));
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("its last line was: goodbye"));
}

TEST(Core, TheFirstDeathIsTheCauseAndTheNextAreNotCounted) {
  job::Job job = Make(3, 0);
  job.roles[0].restart.limit = 1;
  CoreDriver d(job);
  d.JoinAll();
  d.End(1, job::Signaled(9));
  d.End(2, job::Exited(1));  // permanent by itself, here a consequence
  d.End(3, job::Signaled(9));
  EXPECT_FALSE(d.core.verdict());
  EXPECT_TRUE(d.records[d.records.size() - 1].consequence);
  EXPECT_FALSE(d.records[d.records.size() - 1].counted);
  d.Pass(Millis(600));
  for (int task = 0; task < 3; ++task) EXPECT_EQ(d.core.state_of(task), TaskState::kRunning);
}

TEST(Core, ADeathThatNobodyMakesGoodHasNoConsequences) {
  job::Job job = Make(3, 0);
  job.success = {job::SuccessRule::kAny, {"worker"}, 0};
  CoreDriver d(job);
  d.JoinAll();
  d.End(2, job::Exited(3));  // permanent; the job goes on, as one of the others may end well
  ASSERT_FALSE(d.core.verdict());
  d.End(1, job::Exited(3));
  EXPECT_EQ(d.core.state_of(0), TaskState::kEnded);
}

TEST(Core, AFailedTaskFailsAJobThatWaitsForTheFirst) {
  job::Job job = Make(3, 0);
  job.success = {job::SuccessRule::kFirst, {"worker"}, 0};
  CoreDriver d(job);
  d.JoinAll();
  d.End(3, job::Exited(3));
  EXPECT_EQ(d.Count(Kind::kDrain), 2);
  d.End(1, job::Exited(0));  // too late
  d.End(2, job::Signaled(15));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kFailed);
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 2 exited with 3 and is not started"));
}

TEST(Core, TheJobsRestartsAreCountedOverAllItsTasksAndItsWholeLife) {
  job::Job job = Make(3, 0);
  job.limits.restarts = 2;
  job.success = {job::SuccessRule::kAny, {"worker"}, 0};
  CoreDriver d(job);
  d.JoinAll();
  for (const MemberId member : {1, 2}) {
    d.End(member, job::Signaled(9));
    for (int i = 0; i < 16; ++i) {  // then no death is a consequence any more
      d.Pass(Millis(2'000));
      for (const MemberId other : {1, 2, 3}) d.Do(LauncherHeartbeat{other});
    }
  }
  // A restarted coordinator has counted them too.
  CoreDriver again(job, true, d.records);
  for (const MemberId member : {1, 2, 3}) {
    const int index = static_cast<int>(member) - 1;
    again.Do(LauncherJoined{member, "worker", index, 0, "i" + std::to_string(member), 1,
                            again.core.attempt_of(index), true});
  }
  again.now += Millis(31'000);
  again.End(3, job::Signaled(9));
  EXPECT_EQ(again.Count(Kind::kDrain), 2);
  again.End(1, job::Signaled(15));
  again.End(2, job::Signaled(15));
  ASSERT_TRUE(again.core.verdict());
  EXPECT_EQ(again.core.verdict()->state, JobState::kFailed);
  EXPECT_THAT(again.core.verdict()->reason, HasSubstr("worker 2 was killed by signal 9"));
  EXPECT_THAT(again.core.verdict()->reason, HasSubstr("'limits: restarts' allows 2"));
}

TEST(Core, OneOutOfMemoryIsTransientTheSecondIsTheReason) {
  CoreDriver d(Make(1, 0));
  d.JoinAll();
  d.End(1, job::OutOfMemory("exceeded its 512 MiB"));
  d.Pass(Millis(600));
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  d.End(1, job::OutOfMemory("exceeded its 512 MiB"));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 0 exceeded its 512 MiB"));
}

TEST(Core, ALostLauncherCostsARestartAndItsNewAddressANewGeneration) {
  CoreDriver d(Make(2, 1));
  d.JoinAll();
  d.Do(LauncherDisconnected{3});
  d.Do(LauncherJoined{9, "server", 0, 1, "i9", 0, -1, false});
  d.Do(PortsLeased{9, "h9", {4999}});
  EXPECT_EQ(d.core.generation(), 2);
  EXPECT_EQ(d.Count(Kind::kDescribe), 1);
  d.Pass(Millis(600));
  EXPECT_EQ(d.core.state_of(2), TaskState::kRunning);
  EXPECT_EQ(d.core.attempt_of(2), 1);
  EXPECT_EQ(d.core.Cluster().FindRole("server")->members[0].host, "h9");
}

TEST(Core, WhoComesBackIsToldWhoHasEnded) {
  CoreDriver d(Make(3, 1));
  d.JoinAll();
  d.End(2, job::Exited(0));
  EXPECT_EQ(d.Count(Kind::kDescribe), 0);  // no task has lost what worker 1 told before it ended
  EXPECT_EQ(d.core.Cluster().FindRole("worker")->ended, std::vector<int>{1});
  d.End(4, job::Signaled(9));  // the server, and worker 0 with it
  d.End(1, job::Signaled(9));
  EXPECT_EQ(d.Count(Kind::kDescribe), 0);
  d.Pass(Millis(5'000));
  EXPECT_EQ(d.core.attempt_of(3), 1);
  EXPECT_EQ(d.core.attempt_of(0), 1);
  EXPECT_EQ(d.Count(Kind::kDescribe), 2);  // to all, before each start
  EXPECT_EQ(d.Count(Kind::kStart), 2);
  // From now on a restarted server may have forgotten the end of another task.
  d.End(3, job::Exited(0));
  EXPECT_EQ(d.Count(Kind::kDescribe), 1);
  EXPECT_EQ(d.core.Cluster().FindRole("worker")->ended, (std::vector<int>{1, 2}));
}

TEST(Core, SilenceIsSuspectThenDeathAndTheEnginesWordIsDeathAtOnce) {
  CoreDriver d(Make(2, 0));
  d.JoinAll();
  d.Pass(Millis(5'000));
  d.Do(LauncherHeartbeat{1});
  EXPECT_EQ(d.Text(Kind::kNote), "worker 0 is heard of again");
  d.Pass(Millis(25'000));
  EXPECT_EQ(d.core.state_of(1), TaskState::kCreated);
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  d.Do(LauncherLost{"worker", 0, 0, "its node went away"});
  EXPECT_EQ(d.core.state_of(0), TaskState::kCreated);
}

TEST(Core, AReconnectingLauncherKeepsItsProgramAndGetsOrdersThatWereLost) {
  CoreDriver d(Make(1, 1));
  d.JoinAll();
  d.Do(LauncherDisconnected{2});
  d.End(1, job::Exited(0));
  d.Do(LauncherJoined{5, "server", 0, 0, "i2", 1, 0, true});
  EXPECT_EQ(d.Count(Kind::kStart), 0);
  EXPECT_EQ(d.Count(Kind::kDrain, 1), 1);
  d.Do(LauncherDisconnected{5});
  d.Do(LauncherJoined{6, "server", 0, 0, "i2", 1, 0, true});
  d.End(6, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  // The same end again: acknowledged again, counted once.
  d.Do(LauncherJoined{7, "server", 0, 0, "i2", 1, 0, true});
  d.Do(ProgramEnded{7, 0, job::Exited(0), "", -1, ""});
  EXPECT_GE(d.Count(Kind::kAck), 1);
  EXPECT_EQ(d.Count(Kind::kRecord), 0);
}

TEST(Core, AnUnknownProgramIsRefused) {
  CoreDriver d(Make(1, 0));
  d.Do(LauncherJoined{1, "worker", 0, 0, "stranger", 3, 2, true});
  EXPECT_EQ(d.Count(Kind::kRefuse), 1);
}

TEST(Core, NothingIsAcknowledgedBeforeItIsStored) {
  CoreDriver d(Make(1, 0));
  d.JoinAll();
  d.End(1, job::Exited(0));
  int64_t ended = 0, verdict = 0;
  for (const Action& one : d.last) {
    if (one.kind == Kind::kRecord && one.record.kind == JournalRecord::Kind::kEnded)
      ended = one.record.seq;
    if (one.kind == Kind::kRecord && one.record.kind == JournalRecord::Kind::kVerdict)
      verdict = one.record.seq;
    if (one.kind == Kind::kAck || one.kind == Kind::kRelease) {
      EXPECT_EQ(one.after, ended);
    }
    if (one.kind == Kind::kWriteVerdict) {
      EXPECT_EQ(one.after, verdict);
    }
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(verdict, ended);
}

TEST(Core, ItEndsWhenTheVerdictIsAcknowledgedOrAfterFiveSeconds) {
  CoreDriver acked(Make(1, 0));
  acked.JoinAll();
  acked.End(1, job::Exited(0));
  acked.Do(VerdictAcknowledged{});
  EXPECT_EQ(acked.Count(Kind::kExit), 0);
  acked.Do(LauncherDisconnected{1});
  EXPECT_EQ(acked.Count(Kind::kExit), 1);

  CoreDriver silent(Make(1, 0));
  silent.JoinAll();
  silent.End(1, job::Exited(0));
  silent.now += Millis(4'999);
  silent.Do(Tick{});
  EXPECT_EQ(silent.Count(Kind::kExit), 0);
  silent.now += Millis(1);
  silent.Do(Tick{});
  EXPECT_EQ(silent.Count(Kind::kExit), 1);
}

TEST(Core, ADeadlineAndALostController) {
  job::Job job = Make(1, 0);
  job.limits.deadline = Millis(2'000);
  CoreDriver d(job);
  d.JoinAll();
  d.Pass(Millis(2'000));
  EXPECT_EQ(d.Count(Kind::kDrain), 1);
  d.End(1, job::Signaled(15));
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("deadline of 2.0 s"));

  CoreDriver e(Make(1, 0));
  e.JoinAll();
  e.Do(ControllerDisconnected{});
  e.Pass(Millis(4'900));
  EXPECT_EQ(e.core.state_of(0), TaskState::kRunning);
  e.Pass(Millis(100));
  EXPECT_EQ(e.core.state_of(0), TaskState::kDraining);
  e.End(1, job::Exited(0));
  EXPECT_EQ(e.core.verdict()->state, JobState::kCancelled);
  // No controller is left to acknowledge it.
  e.Do(LauncherDisconnected{1});
  EXPECT_EQ(e.Count(Kind::kExit), 1);
}

TEST(Core, DrainThenStopThenKill) {
  CoreDriver d(Make(1, 1));
  d.JoinAll();
  d.Do(Command{StopMode::kDrain, "Ctrl-C"});
  EXPECT_EQ(d.Count(Kind::kDrain, 0), 1);
  EXPECT_EQ(d.Count(Kind::kDrain, 1), 0);  // it follows
  d.Do(Command{StopMode::kStop, "Ctrl-C again"});
  EXPECT_EQ(d.Count(Kind::kDrain, 1), 1);
  d.Do(Command{StopMode::kKill, "and again"});
  EXPECT_EQ(d.Count(Kind::kKill), 2);
  d.End(1, job::Signaled(9));
  d.End(2, job::Signaled(9));
  EXPECT_EQ(d.core.verdict()->state, JobState::kCancelled);
}

// Ends well after the job was stopped: it has saved, but the job's work is not done.
TEST(Core, AJobThatWasStoppedIsCancelledHoweverWellItsTasksEnd) {
  for (const StopMode mode : {StopMode::kDrain, StopMode::kStop}) {
    CoreDriver d(Make(2, 1));
    d.JoinAll();
    d.Do(Command{mode, "stopped by `shoal stop`"});
    for (const MemberId member : {1, 2, 3}) d.End(member, job::Exited(0));
    ASSERT_TRUE(d.core.verdict());
    EXPECT_EQ(d.core.verdict()->state, JobState::kCancelled);
    EXPECT_EQ(d.core.verdict()->reason, "stopped by `shoal stop`");
    EXPECT_TRUE(EndedWell(*d.core.verdict(), {"worker"}));
  }
}

TEST(Core, AStopAfterTheVerdictWasDecidedChangesNothing) {
  CoreDriver d(Make(1, 1));
  d.JoinAll();
  d.End(1, job::Exited(0));  // its server is being drained
  d.Do(Command{StopMode::kStop, "Ctrl-C"});
  d.End(2, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

// The report of a launcher that got SIGTERM from its engine or from a person.
void EndInterrupted(CoreDriver* d, MemberId member, const job::TaskEnd& end) {
  const int attempt = d->core.attempt_of(*d->core.TaskOf(member));
  d->Do(
      ProgramEnded{member, attempt, end, "", -1, "", "its launcher was told to stop by a signal"});
}

TEST(Core, AGoodEndThatOthersCausedIsALossAndIsRestartedByPolicy) {
  for (const int code : {0, 1, 143}) {
    CoreDriver d(Make(2, 1));
    d.JoinAll();
    EndInterrupted(&d, 1, job::Exited(code));
    EXPECT_EQ(d.core.state_of(0), TaskState::kCreated) << code;
    EXPECT_EQ(d.Count(Kind::kRefuse), 1) << "that launcher starts nothing any more";
    EXPECT_EQ(d.core.MemberOf(0), 0u);
    d.Do(LauncherLost{"worker", 0, 0,
                      "exited with 77"});  // the engine's later report of the same loss
    d.Join(11, "worker", 0, 1);
    d.Pass(Millis(1'500));
    EXPECT_EQ(d.core.state_of(0), TaskState::kRunning) << code;
    EXPECT_EQ(d.core.attempt_of(0), 1);
    d.End(11, job::Exited(0));
    d.End(2, job::Exited(0));
    d.End(3, job::Signaled(15));
    ASSERT_TRUE(d.core.verdict());
    EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
    EXPECT_EQ(d.core.verdict()->tasks[0].attempts, 2);
  }
}

TEST(Core, AnEndThatOthersCausedFailsTheJobWhereNothingIsRestarted) {
  job::Job job = Make(2, 0);
  job.roles[0].restart.when = job::RestartWhen::kNever;
  CoreDriver d(job);
  d.JoinAll();
  EndInterrupted(&d, 1, job::Exited(0));
  d.Do(LauncherDisconnected{1});
  d.End(2, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kFailed);
  EXPECT_THAT(d.core.verdict()->reason,
              HasSubstr("worker 0 was lost: its launcher was told to stop by a signal that the "
                        "coordinator had not sent; that it then ended well does not count"));
}

// SIGTERM reached its program but not yet its launcher: the workers would wait for it for ever.
TEST(Core, AServerOfOursThatEndsBeforeItsWorkersIsALoss) {
  for (const job::Framework framework : {job::Framework::kShoal, job::Framework::kGeneric}) {
    job::Job job = Make(1, 1);
    job.framework = framework;
    CoreDriver d(job);
    d.JoinAll();
    d.End(2, job::Exited(0));
    EXPECT_EQ(d.core.state_of(1) == TaskState::kEnded, framework == job::Framework::kGeneric);
    d.Pass(Millis(1'500));
    if (framework == job::Framework::kShoal) {
      EXPECT_EQ(d.core.state_of(1), TaskState::kRunning);
      EXPECT_EQ(d.core.attempt_of(1), 1);
    }
    d.End(1, job::Exited(0));
    if (framework == job::Framework::kShoal) d.End(2, job::Exited(0));
    ASSERT_TRUE(d.core.verdict());
    EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
  }
}

TEST(Core, ARuleForTheCodeComesBeforeWhoCausedTheEnd) {
  job::Job job = Make(1, 0);
  job.roles[0].on_exit.push_back({"3", job::EndAction::kIgnore});
  CoreDriver d(job);
  d.JoinAll();
  EndInterrupted(&d, 1, job::Exited(3));
  EXPECT_EQ(d.Count(Kind::kRelease), 1) << "its launcher may exit with 0: no other is wanted";
  EXPECT_EQ(d.Count(Kind::kRefuse), 0);
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

TEST(Core, ATaskThatIsDrainedMayBeToldToStopByOthersToo) {
  CoreDriver d(Make(1, 1));
  d.JoinAll();
  d.End(1, job::Exited(0));  // the server follows, and is drained
  EndInterrupted(&d, 2, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

TEST(Core, AStopBeforeAnythingStartedEndsAtOnce) {
  CoreDriver d(Make(2, 1));
  d.Join(1, "worker", 0);
  d.Do(Command{StopMode::kStop, "never mind"});
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kCancelled);
  EXPECT_EQ(d.Count(Kind::kRelease), 1);
}

TEST(Core, ARefusedTaskFailsTheJobWithItsReason) {
  CoreDriver d(Make(2, 0));
  d.Join(1, "worker", 0);
  d.Do(LauncherRefused{"worker", 1, "no such image"});
  ASSERT_TRUE(d.core.verdict());
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 1 could not be started: no such image"));
}

TEST(Core, RestoreRefusesAForeignJournal) {
  CoreDriver d(Make(2, 0));
  d.JoinAll();
  CoordinatorCore smaller(Make(1, 0));
  EXPECT_EQ(smaller.Restore(d.records).code(), Code::kDataLoss);
  std::vector<JournalRecord> gap = d.records;
  gap.erase(gap.begin() + 1);
  CoordinatorCore same(Make(2, 0));
  EXPECT_EQ(same.Restore(gap).code(), Code::kDataLoss);
}

}  // namespace
}  // namespace shoal::rendezvous
