// A job that is suspended and goes on under another coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/lifecycle/core_driver.h"

namespace shoal::rendezvous {
namespace {

using testing::HasSubstr;

// The job goes on from the records of `before`; `resumes`: how often it was resumed.
std::unique_ptr<CoreDriver> GoOn(const CoreDriver& before, int resumes) {
  return std::make_unique<CoreDriver>(before.core.job(), true, before.records, resumes);
}

TEST(Suspend, WorkersEndBeforeServersAndNobodyHasSucceeded) {
  CoreDriver d(Make(2, 1));
  d.JoinAll();
  d.Do(Suspend{"somebody wants it"});
  EXPECT_EQ(d.Count(Kind::kDrain), 2);
  d.End(1, job::Exited(0));  // it has saved
  d.End(2, job::Signaled(15));
  EXPECT_EQ(d.Count(Kind::kDrain), 1);
  d.Do(Suspend{"told again"});
  EXPECT_EQ(d.Count(Kind::kNote), 0);
  d.End(3, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSuspended);
  EXPECT_EQ(d.core.verdict()->reason, "somebody wants it");
  EXPECT_EQ(d.core.job_state(), JobState::kSuspended);
  // Started again without a resumption, it only repeats its verdict.
  const auto again = GoOn(d, 0);
  EXPECT_EQ(again->core.job_state(), JobState::kSuspended);
  again->Do(VerdictAcknowledged{});
  EXPECT_GE(again->Count(Kind::kExit), 1);
}

TEST(Suspend, AllStartAgainInANewGenerationWhenItIsResumed) {
  CoreDriver d(Make(2, 1));
  d.JoinAll();
  d.Do(Suspend{"x"});
  for (const MemberId member : {1, 2, 3}) d.End(member, job::Signaled(15));
  auto next = GoOn(d, 1);
  EXPECT_EQ(next->core.job_state(), JobState::kStarting);
  EXPECT_FALSE(next->core.verdict());
  next->Join(11, "worker", 0);
  next->Join(12, "worker", 1);
  EXPECT_EQ(next->Count(Kind::kStart), 0);
  next->Join(13, "server", 0);
  EXPECT_EQ(next->Count(Kind::kStart), 3);
  EXPECT_EQ(next->core.generation(), 2);
  EXPECT_EQ(next->core.job_state(), JobState::kRunning);
  for (int task = 0; task < 3; ++task) EXPECT_EQ(next->core.attempt_of(task), 1);
  // A coordinator that dies now does not resume the job once more.
  const auto crashed = GoOn(*next, 1);
  EXPECT_EQ(crashed->core.state_of(0), TaskState::kRunning);
  // And once more.
  next->Do(Suspend{"y"});
  for (const MemberId member : {11, 12, 13}) next->End(member, job::Signaled(15));
  EXPECT_EQ(next->core.verdict()->state, JobState::kSuspended);
  EXPECT_EQ(GoOn(*next, 1)->core.job_state(), JobState::kSuspended);
  const auto third = GoOn(*next, 2);
  third->JoinAll();
  EXPECT_EQ(third->core.generation(), 3);
  for (const MemberId member : {1, 2}) third->End(member, job::Exited(0));
  third->End(3, job::Signaled(15));
  ASSERT_TRUE(third->core.verdict());
  EXPECT_EQ(third->core.verdict()->state, JobState::kSucceeded);
}

TEST(Suspend, TheRolesSignalComesBeforeSigtermAndHasItsOwnTime) {
  job::Job job = Make(1, 1);
  job.roles[0].checkpoint_signal = 10;
  job.limits.stop_grace = Millis(4'000);
  CoreDriver d(job);
  d.JoinAll();
  d.Do(Suspend{"x"});
  ASSERT_EQ(d.Count(Kind::kDrain), 1);
  for (const Action& one : d.last) {
    if (one.kind != Kind::kDrain) continue;
    EXPECT_EQ(one.signal, 10);
    EXPECT_EQ(one.grace, Millis(4'000));
  }
  d.Pass(Millis(7'900));
  EXPECT_EQ(d.Count(Kind::kKill), 0);
  d.Pass(Millis(200));
  EXPECT_EQ(d.Count(Kind::kKill), 1);
  // An ordinary stop does not send that signal.
  CoreDriver stopped(job);
  stopped.JoinAll();
  stopped.Do(Command{StopMode::kDrain, "x"});
  for (const Action& one : stopped.last) EXPECT_EQ(one.signal, 0);
}

TEST(Suspend, WhoHadEndedWellBeforeStaysSoUnlessOthersMayWaitForIt) {
  for (const bool together : {false, true}) {
    job::Job job = Make(2, 0);
    if (together) job.roles[0].restart.scope = job::RestartScope::kJob;
    CoreDriver d(job);
    d.JoinAll();
    d.End(1, job::Exited(0));
    d.Do(Suspend{"x"});
    d.End(2, job::Signaled(15));
    ASSERT_EQ(d.core.verdict()->state, JobState::kSuspended);
    auto next = GoOn(d, 1);
    // The engine makes launchers for all tasks; those without work leave and are not waited for.
    next->Do(LauncherJoined{11, "worker", 0, 0, "n", 0, -1, false});
    EXPECT_EQ(next->Count(Kind::kRelease), together ? 0 : 1);
    EXPECT_EQ(next->Count(Kind::kRefuse), 0);
    if (together) next->Do(PortsLeased{11, "h", {1}});
    next->Join(12, "worker", 1);
    EXPECT_EQ(next->Count(Kind::kStart), together ? 2 : 1);
    next->End(12, job::Exited(0));
    if (together) next->End(11, job::Exited(0));
    ASSERT_TRUE(next->core.verdict());
    EXPECT_EQ(next->core.verdict()->state, JobState::kSucceeded);
  }
}

TEST(Suspend, RestartsStayCounted) {
  job::Job job = Make(1, 0);
  job.roles[0].restart.limit = 1;
  CoreDriver d(job);
  d.JoinAll();
  d.End(1, job::Signaled(9));
  d.Pass(Millis(1'000));
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  d.Do(Suspend{"x"});
  d.End(1, job::Signaled(15));
  auto next = GoOn(d, 1);
  next->Join(11, "worker", 0);
  EXPECT_EQ(next->core.attempt_of(0), 2);
  next->End(11, job::Signaled(9));
  ASSERT_TRUE(next->core.verdict());
  EXPECT_EQ(next->core.verdict()->state, JobState::kFailed);
}

TEST(Suspend, AJobThatGathersMayBeSuspendedAndOneThatEndsNotAnyMore) {
  CoreDriver d(Make(2, 1));
  d.Join(1, "worker", 0);
  d.Do(Suspend{"x"});
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSuspended);
  auto next = GoOn(d, 1);
  next->JoinAll();
  EXPECT_EQ(next->core.generation(), 1);
  EXPECT_EQ(next->core.attempt_of(0), 0);
  next->Do(Command{StopMode::kDrain, "enough"});
  next->Do(Suspend{"too late"});
  EXPECT_THAT(next->Text(Kind::kNote), HasSubstr("not suspended: the job is ending"));
  for (const MemberId member : {1, 2, 3}) next->End(member, job::Signaled(15));
  EXPECT_EQ(next->core.verdict()->state, JobState::kCancelled);
}

TEST(Suspend, GatheringAgainHasItsWholeTime) {
  job::Job job = Make(1, 0);
  job.limits.gather = Millis(60'000);
  CoreDriver d(job);
  d.JoinAll();
  for (int i = 0; i < 300; ++i) {
    d.Pass(Millis(1'000));
    d.Do(LauncherHeartbeat{1});
  }
  d.Do(Suspend{"x"});
  d.End(1, job::Signaled(15));
  auto next = GoOn(d, 1);
  next->Pass(Millis(59'000));
  EXPECT_FALSE(next->core.verdict());
  next->Pass(Millis(2'000));
  ASSERT_TRUE(next->core.verdict());
  EXPECT_EQ(next->core.verdict()->state, JobState::kFailed);
  EXPECT_FALSE(next->core.verdict()->gathered);
}

}  // namespace
}  // namespace shoal::rendezvous
