// Elastic roles, and jobs that go on with fewer tasks: with a clock that the test controls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/lifecycle/core_driver.h"

namespace shoal::rendezvous {
namespace {

using job::RestartScope;
using testing::HasSubstr;

// Workers from `least` to `most`, `now` of them at first; servers that follow them, from 1 to 4.
job::Job Elastic(int least, int now, int most, int servers = 0) {
  job::Job job = Make(now, servers);
  job.roles[0].min_replicas = least;
  job.roles[0].max_replicas = most;
  if (servers > 0) {
    job.roles[1].min_replicas = 1;
    job.roles[1].max_replicas = 4;
  }
  return job;
}

std::vector<std::string> Hosts(const CoreDriver& d, const std::string& role) {
  std::vector<std::string> hosts;
  const auto cluster = d.core.Cluster();
  for (const auto& member : cluster.FindRole(role)->members) hosts.push_back(member.host);
  return hosts;
}

using Names = std::vector<std::string>;

job::Job Impatient(job::Job job) {
  job.limits.gather = Millis(20'000);
  return job;
}

// Worker 0 joins and lives; no other task joins within the job's 20 s.
void OneComes(CoreDriver* d) {
  d->Join(1, "worker", 0);
  for (int i = 0; i < 6; ++i) {
    d->Pass(Millis(4'000));
    d->Do(LauncherHeartbeat{1});
  }
}

TEST(ElasticCore, StartsWithItsMinWhenNobodyElseComes) {
  CoreDriver d(Elastic(2, 4, 4));
  d.Join(1, "worker", 0);
  d.Pass(Millis(4'000));
  d.Do(LauncherHeartbeat{1});
  d.Join(2, "worker", 2);
  d.Pass(Millis(4'000));
  for (const MemberId member : {1, 2}) d.Do(LauncherHeartbeat{member});
  d.Pass(Millis(4'000));
  EXPECT_EQ(d.core.generation(), 0);
  for (const MemberId member : {1, 2}) d.Do(LauncherHeartbeat{member});
  d.Pass(Millis(2'100));  // 10 s after the last one joined
  EXPECT_EQ(d.core.generation(), 1);
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1", "", "h2"}));
  EXPECT_EQ(d.core.state_of(2), TaskState::kRunning);
  // A late task starts, and all are told.
  d.Join(3, "worker", 1);
  EXPECT_EQ(d.core.generation(), 2);
  EXPECT_EQ(d.core.state_of(1), TaskState::kRunning);
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1", "h3", "h2"}));
  for (const MemberId member : {1, 2, 3}) d.End(member, job::Exited(0));
  ASSERT_TRUE(d.core.verdict()) << "worker 3 is not waited for";
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded) << d.core.verdict()->reason;
}

TEST(ElasticCore, WhoNeverComesIsNotWaitedForForEver) {
  CoreDriver d(Impatient(Elastic(1, 2, 2)));
  OneComes(&d);
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  d.End(1, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded) << d.core.verdict()->reason;
}

TEST(ElasticCore, BelowItsMinTheJobIsNotStarted) {
  CoreDriver d(Impatient(Elastic(2, 3, 3)));
  OneComes(&d);
  ASSERT_TRUE(d.core.verdict());
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 1 and 1 other task did not join"));
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("1 of 3 tasks had"));
}

TEST(ElasticCore, AMemberThatFailsForGoodIsDoneWithoutDownToTheMin) {
  CoreDriver d(Elastic(2, 4, 4, 1));
  d.JoinAll();
  d.End(2, job::Exited(3));
  EXPECT_EQ(d.core.generation(), 2);
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1", "", "h3", "h4"}));
  EXPECT_EQ(d.Count(Kind::kDrain), 0);
  d.End(4, job::Exited(3));
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1", "", "h3"}));
  d.End(1, job::Exited(0));
  EXPECT_EQ(d.core.job_state(), JobState::kRunning);
  d.End(3, job::Exited(3));  // one is not enough
  EXPECT_EQ(d.core.job_state(), JobState::kFinishing);
}

TEST(ElasticCore, GrowsAtTheLowestFreeIndicesAndShrinksFromTheHighest) {
  CoreDriver d(Elastic(1, 2, 4, 1));
  d.JoinAll();  // workers 1 and 2, server 3
  const int server = *d.core.Find("server", 0);
  d.Do(Scale{"worker", 4, "more"});
  EXPECT_EQ(d.records.back().kind, JournalRecord::Kind::kScale);
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1", "h2"}));
  d.Join(4, "worker", 2);
  d.Join(5, "worker", 3);
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1", "h2", "h4", "h5"}));
  EXPECT_EQ(d.core.state_of(3), TaskState::kRunning);
  EXPECT_EQ(d.core.generation(), 3);

  d.Do(Scale{"worker", 2, "fewer"});
  EXPECT_EQ(d.Count(Kind::kDrain, 2), 1);
  EXPECT_EQ(d.Count(Kind::kDrain, 3), 1);
  EXPECT_EQ(d.Count(Kind::kDrain), 2);
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1", "h2", "h4", "h5"})) << "named until they have ended";
  d.End(4, job::Exited(0));
  EXPECT_EQ(d.Count(Kind::kRelease), 1);
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1", "h2", "", "h5"}));
  d.Do(Scale{"worker", 4, "more"});
  EXPECT_THAT(d.Text(Kind::kNote), HasSubstr("not scaled: worker: worker 3 is still leaving"));
  d.End(5, job::Signaled(15));
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1", "h2"}));
  EXPECT_EQ(d.core.generation(), 5);
  EXPECT_EQ(d.core.state_of(server), TaskState::kRunning);

  // An index may be used again, as a further attempt.
  d.Do(Scale{"worker", 3, "more"});
  d.Join(6, "worker", 2);
  EXPECT_EQ(d.core.attempt_of(2), 1);
  EXPECT_EQ(d.core.state_of(2), TaskState::kRunning);
  for (const MemberId member : {1, 2, 6}) d.End(member, job::Exited(0));
  d.End(3, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded) << d.core.verdict()->reason;
}

TEST(ElasticCore, ServersGrowAndShrinkUnderTheirWorkers) {
  CoreDriver d(Elastic(1, 2, 2, 2));
  d.JoinAll();  // workers 1 and 2, servers 3 and 4
  d.Do(Scale{"server", 0, ""});
  EXPECT_THAT(d.Text(Kind::kNote), HasSubstr("expected from 1 to 4"));
  d.Do(Scale{"server", 1, ""});
  EXPECT_EQ(d.Count(Kind::kDrain, *d.core.Find("server", 1)), 1);
  EXPECT_EQ(Hosts(d, "server"), (Names{"h3", "h4"}));
  d.End(4, job::Exited(0));
  EXPECT_EQ(Hosts(d, "server"), (Names{"h3"}));
  EXPECT_TRUE(d.core.Cluster().FindRole("server")->ended.empty());
  d.End(1, job::Exited(0));
  d.End(2, job::Exited(0));
  EXPECT_EQ(d.Count(Kind::kDrain, *d.core.Find("server", 0)), 1);
}

job::Job WithParameterServers() {
  job::Job job = Elastic(1, 2, 2, 3);
  job.roles[1].command = {"@shoal", "ps-server"};
  return job;
}

TEST(ElasticCore, AServerThatDiesBeforeItHasMovedItsRowsIsStartedAgain) {
  CoreDriver d(WithParameterServers());
  d.JoinAll();  // workers 1 and 2, servers 3, 4 and 5
  const int second = *d.core.Find("server", 1);
  d.Do(Scale{"server", 1, ""});
  EXPECT_EQ(d.Count(Kind::kDrain), 2);
  d.End(4, job::Signaled(9));
  EXPECT_EQ(d.core.state_of(second), TaskState::kEnded) << "server 2 is still leaving";
  d.End(5, job::Exited(0));
  EXPECT_EQ(d.core.state_of(second), TaskState::kCreated);
  EXPECT_EQ(d.records.back().kind, JournalRecord::Kind::kGeneration);
  const auto scaled = std::find_if(d.records.rbegin(), d.records.rend(), [](const auto& one) {
    return one.kind == JournalRecord::Kind::kScale;
  });
  EXPECT_EQ(scaled->replicas, 2);
  EXPECT_THAT(scaled->text, HasSubstr("server 1 was stopped: was killed by signal 9 (SIGKILL)"));
  d.Join(6, "server", 1);
  EXPECT_EQ(d.core.state_of(second), TaskState::kRunning);
  EXPECT_EQ(d.core.attempt_of(second), 1);
  EXPECT_EQ(Hosts(d, "server"), (Names{"h3", "h6"}));
  for (const MemberId member : {1, 2}) d.End(member, job::Exited(0));
  for (const MemberId member : {3, 6}) d.End(member, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded) << d.core.verdict()->reason;
}

TEST(ElasticCore, ALostServerWaitsForItsLeader) {
  CoreDriver d(WithParameterServers());
  d.JoinAll();  // workers 1 and 2, servers 3, 4 and 5
  const int leader = *d.core.Find("server", 0), second = *d.core.Find("server", 1);
  EXPECT_EQ(d.core.tasks().initial_members(leader), 3);
  d.Do(Scale{"server", 1, ""});
  d.End(3, job::Signaled(9));
  d.End(5, job::Exited(0));
  d.End(4, job::Exited(1));
  EXPECT_EQ(d.core.state_of(second), TaskState::kEnded) << "the leader is away";
  EXPECT_EQ(Hosts(d, "server"), (Names{"h3"}));
  d.Pass(Millis(2'000));
  EXPECT_EQ(d.core.state_of(leader), TaskState::kRunning);
  EXPECT_EQ(d.core.state_of(second), TaskState::kCreated);
  EXPECT_EQ(d.core.tasks().initial_members(leader), 3) << "the workers know the job by this number";
}

TEST(ElasticCore, NoServerJoinsALeaderThatIsAwayAndAlone) {
  CoreDriver d(WithParameterServers());
  d.JoinAll();  // workers 1 and 2, servers 3, 4 and 5
  const int leader = *d.core.Find("server", 0), second = *d.core.Find("server", 1);
  d.Do(Scale{"server", 1, ""});
  d.End(4, job::Exited(0));
  d.End(5, job::Exited(0));
  d.End(3, job::Signaled(9));
  d.Do(Scale{"server", 2, ""});
  EXPECT_THAT(d.Text(Kind::kNote),
              HasSubstr("not scaled: server: server 0 is being started again"));
  EXPECT_EQ(d.core.state_of(second), TaskState::kEnded);
  d.Pass(Millis(2'000));
  EXPECT_EQ(d.core.state_of(leader), TaskState::kRunning);
  EXPECT_EQ(Hosts(d, "server"), (Names{"h3"})) << "alone, it takes over all rows";
  d.Do(Scale{"server", 2, ""});
  EXPECT_EQ(d.core.state_of(second), TaskState::kCreated);
  d.Join(6, "server", 1);
  EXPECT_EQ(d.core.state_of(second), TaskState::kRunning);
}

TEST(ElasticCore, AServerThatFailsForGoodFailsTheJob) {
  job::Job job = WithParameterServers();
  job.roles[1].restart.limit = 0;
  CoreDriver d(job);
  d.JoinAll();
  d.End(5, job::Signaled(9));
  EXPECT_EQ(d.core.job_state(), JobState::kFinishing);
  for (const MemberId member : {1, 2, 3, 4}) d.End(member, job::Signaled(15));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kFailed);
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("server 2 was killed by signal 9"));
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("so worker cannot finish"));
}

TEST(ElasticCore, WithTwoCopiesOfEachRowALostServerIsDoneWithout) {
  job::Job job = WithParameterServers();
  job.framework = job::Framework::kShoal;
  job.roles[1].command = {"@shoal", "learn", "server"};
  job.learn["server_copies"].text = "2";
  CoreDriver d(job);
  d.JoinAll();
  d.Do(Scale{"server", 2, ""});
  d.End(5, job::Signaled(9));
  EXPECT_EQ(d.core.state_of(*d.core.Find("server", 2)), TaskState::kEnded);
}

TEST(ElasticCore, ThoseWhoStartTogetherStartAgainWithTheNewcomers) {
  job::Job job = Elastic(1, 2, 4);
  job.roles[0].restart.scope = RestartScope::kJob;
  CoreDriver d(job);
  d.JoinAll();
  d.Do(Scale{"worker", 4, ""});
  EXPECT_EQ(d.Count(Kind::kDrain), 0) << "they work on until somebody has come";
  d.Join(3, "worker", 2);
  EXPECT_EQ(d.core.state_of(2), TaskState::kJoined);
  EXPECT_EQ(d.core.state_of(0), TaskState::kDraining);
  d.Join(4, "worker", 3);
  d.End(1, job::Signaled(15));
  EXPECT_EQ(d.core.generation(), 1);
  d.End(2, job::Exited(1));
  EXPECT_EQ(d.core.generation(), 2);
  EXPECT_EQ(d.Count(Kind::kStart), 4);
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1", "h2", "h3", "h4"}));

  d.Do(Scale{"worker", 1, ""});
  EXPECT_EQ(d.Count(Kind::kDrain), 4);
  for (const MemberId member : {1, 2, 3, 4}) d.End(member, job::Signaled(15));
  EXPECT_EQ(d.core.generation(), 3);
  EXPECT_EQ(Hosts(d, "worker"), (Names{"h1"}));
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  EXPECT_EQ(d.core.state_of(1), TaskState::kEnded);
  d.End(1, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

TEST(ElasticCore, WhatIsNotElasticIsNotScaled) {
  CoreDriver d(Make(2, 1));
  d.JoinAll();
  d.Do(Scale{"worker", 3, ""});
  EXPECT_THAT(d.Text(Kind::kNote), HasSubstr("neither 'min' nor 'max'"));
  d.Do(Scale{"boss", 3, ""});
  EXPECT_THAT(d.Text(Kind::kNote), HasSubstr("no such role"));
  EXPECT_EQ(d.Count(Kind::kRecord), 0);
}

TEST(ElasticCore, ACoordinatorThatComesBackKnowsWhoIsWanted) {
  const job::Job job = Elastic(1, 2, 4);
  CoreDriver d(job);
  d.JoinAll();
  d.Do(Scale{"worker", 3, ""});
  d.Join(3, "worker", 2);
  d.Do(Scale{"worker", 2, ""});
  CoreDriver again(job, true, d.records);
  EXPECT_EQ(again.core.generation(), d.core.generation());
  EXPECT_EQ(again.core.state_of(2), TaskState::kDraining);
  EXPECT_EQ(Hosts(again, "worker"), (Names{"h1", "h2", "h3"}));
  EXPECT_EQ(again.core.state_of(3), TaskState::kEnded);
}

}  // namespace
}  // namespace shoal::rendezvous
