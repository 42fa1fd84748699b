// Hosts that a rule of the job file excludes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/coordinator/record_events.h"
#include "rendezvous/lifecycle/core_driver.h"

namespace shoal::rendezvous {
namespace {

using testing::HasSubstr;

// Workers whose rule blames the host for exit code 7.
job::Job Strict(int workers, int servers = 0) {
  job::Job job = Make(workers, servers);
  job.roles[0].on_exit = {{"7", job::EndAction::kExcludeHost}};
  job.roles[0].restart.backoff = Millis(0);
  return job;
}

const JournalRecord* Find(const CoreDriver& d, JournalRecord::Kind kind) {
  for (const JournalRecord& record : d.records) {
    if (record.kind == kind) return &record;
  }
  return nullptr;
}

const Action* Refusal(const CoreDriver& d, MemberId member) {
  for (const Action& action : d.last) {
    if (action.kind == Kind::kRefuse && action.member == member) return &action;
  }
  return nullptr;
}

// The refusal of this member, if there is one.
void Knock(CoreDriver* d, MemberId member, int incarnation, const std::string& node) {
  d->Do(LauncherJoined{member, "worker", 0, incarnation, "i" + std::to_string(member), 0, -1, false,
                       node});
}

TEST(ExcludeHost, TheTaskGoesElsewhereAndOthersStay) {
  CoreDriver d(Strict(2));
  d.Join(1, "worker", 0, 0, "a");
  d.Join(2, "worker", 1, 0, "a");
  ASSERT_EQ(d.core.job_state(), JobState::kRunning);
  d.End(1, job::Exited(7));
  const JournalRecord* excluded = Find(d, JournalRecord::Kind::kExcluded);
  const JournalRecord* ended = Find(d, JournalRecord::Kind::kEnded);
  ASSERT_TRUE(excluded != nullptr && ended != nullptr);
  EXPECT_EQ(excluded->node, "a");
  EXPECT_TRUE(excluded->durable());
  EXPECT_LT(excluded->seq, ended->seq);  // should the coordinator die in between
  EXPECT_TRUE(ended->counted);
  // The launcher is refused once all of that is stored; no program starts there though no delay is
  // pending.
  const Action* leave = Refusal(d, 1);
  ASSERT_NE(leave, nullptr);
  EXPECT_TRUE(leave->excluded);
  EXPECT_EQ(leave->after, ended->seq);
  EXPECT_EQ(d.Count(Kind::kStart), 0);
  EXPECT_EQ(d.core.state_of(0), TaskState::kCreated);
  EXPECT_EQ(d.core.state_of(1), TaskState::kRunning);
  // The engine has not learnt of it yet.
  Knock(&d, 3, 1, "a");
  ASSERT_NE(Refusal(d, 3), nullptr);
  EXPECT_TRUE(Refusal(d, 3)->excluded);
  EXPECT_THAT(Refusal(d, 3)->text, HasSubstr("this host, a, is excluded for role worker: worker 0 "
                                             "exited with 7, which 'on_exit: {code: 7}' takes for "
                                             "its host's fault"));
  d.Join(4, "worker", 0, 2, "b");
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  EXPECT_EQ(d.core.attempt_of(0), 1);
  EXPECT_EQ(d.core.generation(), 2);  // its address is another one
  d.End(2, job::Exited(0));
  d.End(4, job::Exited(0));
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

TEST(ExcludeHost, WhoIsStartedAgainThereLeavesItToo) {
  CoreDriver d(Strict(2));
  d.Join(1, "worker", 0, 0, "a");
  d.Join(2, "worker", 1, 0, "a");
  d.End(1, job::Exited(7));
  d.Join(3, "worker", 0, 1, "b");
  d.End(2, job::Signaled(9));  // not its host's fault
  ASSERT_NE(Refusal(d, 2), nullptr);
  EXPECT_TRUE(Refusal(d, 2)->excluded);
}

TEST(ExcludeHost, AllOfAScopeLeaveItAndNobodyElse) {
  job::Job job = Strict(3, 1);
  job.roles[0].restart.scope = job.roles[1].restart.scope = job::RestartScope::kJob;
  CoreDriver d(job);
  d.Join(1, "worker", 0, 0, "a");
  d.Join(2, "worker", 1, 0, "a");
  d.Join(3, "worker", 2, 0, "b");
  d.Join(4, "server", 0, 0, "a");
  d.End(1, job::Exited(7));
  EXPECT_NE(Refusal(d, 1), nullptr);
  d.End(2, job::Signaled(15));  // stopped to start again with the others
  EXPECT_NE(Refusal(d, 2), nullptr);
  d.End(3, job::Signaled(15));
  EXPECT_EQ(Refusal(d, 3), nullptr);
  d.End(4, job::Signaled(15));
  EXPECT_EQ(Refusal(d, 4), nullptr);  // of another role
  EXPECT_EQ(d.Count(Kind::kStart), 0);
  d.Join(5, "worker", 0, 1, "b");
  d.Join(6, "worker", 1, 1, "c");
  EXPECT_EQ(d.Count(Kind::kStart), 4);
}

TEST(ExcludeHost, WhatDiesOfAnothersDeathSaysNothingOfItsHost) {
  CoreDriver d(Strict(2));
  d.Join(1, "worker", 0, 0, "a");
  d.Join(2, "worker", 1, 0, "b");
  d.End(1, job::Exited(7));
  d.End(2, job::Exited(7));
  EXPECT_EQ(d.core.state_of(1), TaskState::kRunning);  // again, in place
  EXPECT_EQ(std::count_if(d.records.begin(), d.records.end(),
                          [](const JournalRecord& one) {
                            return one.kind == JournalRecord::Kind::kExcluded;
                          }),
            1);
}

TEST(ExcludeHost, ALauncherThatIsLostCanBeTheHostsFault) {
  job::Job job = Strict(1);
  job.roles[0].on_exit = {{"lost", job::EndAction::kExcludeHost}};
  CoreDriver d(job);
  d.Join(1, "worker", 0, 0, "a");
  CoreDriver next(job, true, d.records);  // knows of it from the journal only
  next.Do(LauncherLost{"worker", 0, 0, "its node is gone"});
  ASSERT_NE(Find(next, JournalRecord::Kind::kExcluded), nullptr);
  EXPECT_EQ(Find(next, JournalRecord::Kind::kExcluded)->node, "a");
  Knock(&next, 2, 1, "a");
  EXPECT_NE(Refusal(next, 2), nullptr);
}

TEST(ExcludeHost, HoldsForTheNextCoordinatorAndAfterASuspension) {
  CoreDriver d(Strict(1));
  d.Join(1, "worker", 0, 0, "a");
  d.End(1, job::Exited(7));
  CoreDriver next(d.core.job(), true, d.records);
  Knock(&next, 2, 1, "a");
  EXPECT_NE(Refusal(next, 2), nullptr);
  next.Join(3, "worker", 0, 2, "b");
  next.Do(Suspend{"x"});
  next.End(3, job::Signaled(15));
  CoreDriver resumed(d.core.job(), true, next.records, 1);
  Knock(&resumed, 4, 0, "a");
  EXPECT_NE(Refusal(resumed, 4), nullptr);
  resumed.Join(5, "worker", 0, 1, "b");
  EXPECT_EQ(resumed.core.state_of(0), TaskState::kRunning);
}

TEST(ExcludeHost, WithoutAnotherHostTheJobFailsAndSaysWhy) {
  CoreDriver refused(Strict(1));
  refused.Join(1, "worker", 0, 0, "a");
  refused.End(1, job::Exited(7));
  refused.Do(LauncherRefused{"worker", 0, "there is no other host"});
  ASSERT_TRUE(refused.core.verdict());
  EXPECT_EQ(refused.core.verdict()->state, JobState::kFailed);
  EXPECT_EQ(
      refused.core.verdict()->reason,
      "worker 0 could not be started: there is no other host; excluded for role worker: a, "
      "because worker 0 exited with 7, which 'on_exit: {code: 7}' takes for its host's fault");
  CoreDriver silent(Strict(1));
  silent.Join(1, "worker", 0, 0, "a");
  silent.End(1, job::Exited(7));
  silent.Pass(Millis(300'001));
  ASSERT_TRUE(silent.core.verdict());
  EXPECT_THAT(
      silent.core.verdict()->reason,
      HasSubstr("no new launcher came within 5 min 00 s; excluded for role worker: a, because"));
}

TEST(ExcludeHost, TheLimitOfRestartsIsOne) {
  job::Job job = Strict(1);
  job.roles[0].restart.limit = 1;
  CoreDriver d(job);
  d.Join(1, "worker", 0, 0, "a");
  d.End(1, job::Exited(7));
  d.Join(2, "worker", 0, 1, "b");
  d.End(2, job::Exited(7));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kFailed);
}

TEST(ExcludeHost, AHostThatIsNotKnownIsNotExcluded) {
  CoreDriver d(Strict(1));
  d.Join(1, "worker", 0);
  d.End(1, job::Exited(7));
  EXPECT_EQ(Find(d, JournalRecord::Kind::kExcluded), nullptr);
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);  // an ordinary retry
}

TEST(ExcludeHost, ControllersAreTold) {
  CoreDriver d(Strict(1));
  d.Join(1, "worker", 0, 0, "a");
  d.End(1, job::Exited(7));
  const auto event = EventOf(*Find(d, JournalRecord::Kind::kExcluded), d.core);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, JobEvent::Type::kExcluded);
  EXPECT_EQ(event->role, "worker");
  EXPECT_EQ(GetStringOr(event->body, "host", ""), "a");
  EXPECT_THAT(event->text, HasSubstr("host a is excluded for role worker: worker 0 exited with 7"));
  const auto again = EventFromJson(EventToJson(*event));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->body, event->body);
}

}  // namespace
}  // namespace shoal::rendezvous
