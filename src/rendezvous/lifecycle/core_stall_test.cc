// Stalled jobs, with a clock that the test controls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/lifecycle/core_driver.h"

namespace shoal::rendezvous {
namespace {

using testing::HasSubstr;

constexpr Millis kStall(60'000);

// Two running workers and a server whose heartbeats the test sends.
class Stall : public testing::Test {
 protected:
  static job::Job JobThat(job::OnStall on_stall) {
    job::Job job = Make(2, 1);
    job.limits.stall = kStall;
    job.limits.on_stall = on_stall;
    return job;
  }
  void Begin(job::OnStall on_stall = job::OnStall::kReport) {
    d = std::make_unique<CoreDriver>(JobThat(on_stall));
    d->JoinAll();
    ASSERT_EQ(d->core.job_state(), JobState::kRunning);
  }
  // Sends heartbeats of all three every second for `time`; tasks in `moving` are active, the others
  // have been idle since `since`. Gives all actions.
  void Beat(Millis time, const std::vector<MemberId>& moving = {}) {
    const Millis until = d->now + time;
    while (d->now < until) {
      d->Pass(Millis(1000));
      Keep();
      for (MemberId member = 1; member <= 3; ++member) {
        const auto task = d->core.TaskOf(member);
        if (!task) continue;
        const bool moves = std::find(moving.begin(), moving.end(), member) != moving.end();
        if (moves) moved_[member] = d->now;
        d->Do(LauncherHeartbeat{member, d->core.attempt_of(*task), d->now - moved_[member]});
        Keep();
      }
    }
  }
  void Answer(MemberId member) {
    const int task = *d->core.TaskOf(member);
    d->Do(StallDiagnostics{member,
                           d->core.attempt_of(task),
                           d->now - moved_[member],
                           {{"last_line", "line of " + std::to_string(member)}}});
    Keep();
  }
  void Keep() { said.insert(said.end(), d->last.begin(), d->last.end()); }
  int Said(Kind kind) const {
    return static_cast<int>(std::count_if(said.begin(), said.end(),
                                          [&](const Action& one) { return one.kind == kind; }));
  }
  const JournalRecord* Last(JournalRecord::Kind kind) const {
    for (auto record = d->records.rbegin(); record != d->records.rend(); ++record) {
      if (record->kind == kind) return &*record;
    }
    return nullptr;
  }

  std::unique_ptr<CoreDriver> d;
  std::vector<Action> said;
  std::map<MemberId, Millis> moved_;
};

TEST_F(Stall, IsNotSaidWhileOneTaskMoves) {
  Begin();
  Beat(Millis(600'000), {2});
  EXPECT_EQ(Said(Kind::kInspect), 0);
  EXPECT_EQ(Last(JournalRecord::Kind::kStalled), nullptr);
}

TEST_F(Stall, IsSaidWithTheEvidenceOfAllAndUnsaidWhenItMoves) {
  Begin();
  Beat(Millis(20'000), {1, 3});
  Beat(Millis(59'000));
  EXPECT_EQ(Said(Kind::kInspect), 0);
  Beat(Millis(2'000));
  ASSERT_EQ(Said(Kind::kInspect), 3);
  Answer(1);
  Answer(2);
  EXPECT_EQ(Last(JournalRecord::Kind::kStalled), nullptr);  // one answer is missing
  Answer(3);
  const JournalRecord* stalled = Last(JournalRecord::Kind::kStalled);
  ASSERT_NE(stalled, nullptr);
  EXPECT_TRUE(stalled->durable());
  EXPECT_THAT(stalled->text, HasSubstr("stalled: no task has printed"));
  const json::array& tasks = stalled->body.at("tasks").as_array();
  ASSERT_EQ(tasks.size(), 3u);
  // The longest idle task comes first.
  EXPECT_EQ(tasks[0].as_object().at("last_line").as_string(), "line of 2");
  EXPECT_GE(tasks[0].as_object().at("still_ms").as_int64(), 80'000);
  // Reported once, and nothing else is done.
  Beat(Millis(300'000));
  EXPECT_EQ(Said(Kind::kInspect), 3);
  EXPECT_EQ(Said(Kind::kDrain), 0);
  EXPECT_EQ(d->core.job_state(), JobState::kRunning);
  EXPECT_EQ(Last(JournalRecord::Kind::kMoving), nullptr);
  Beat(Millis(1'000), {3});
  ASSERT_NE(Last(JournalRecord::Kind::kMoving), nullptr);
  // And again after the next stall.
  Beat(Millis(62'000));
  EXPECT_EQ(Said(Kind::kInspect), 6);
}

TEST_F(Stall, ALauncherThatDoesNotAnswerIsNotWaitedForForLong) {
  Begin();
  Beat(Millis(61'000));
  ASSERT_EQ(Said(Kind::kInspect), 3);
  Answer(1);
  Beat(Millis(3'000));
  EXPECT_EQ(Last(JournalRecord::Kind::kStalled), nullptr);
  Beat(Millis(3'000));
  const JournalRecord* stalled = Last(JournalRecord::Kind::kStalled);
  ASSERT_NE(stalled, nullptr);
  int silent = 0;
  for (const json::value& one : stalled->body.at("tasks").as_array()) {
    silent += GetBoolOr(one.as_object(), "silent", false);
  }
  EXPECT_EQ(silent, 2);
}

TEST_F(Stall, WhoMovesWhileTheEvidenceIsGatheredStallsNothing) {
  Begin();
  Beat(Millis(61'000));
  ASSERT_EQ(Said(Kind::kInspect), 3);
  Answer(1);
  moved_[2] = d->now;
  Answer(2);
  Answer(3);
  Beat(Millis(20'000));
  EXPECT_EQ(Last(JournalRecord::Kind::kStalled), nullptr);
}

TEST_F(Stall, RestartStopsAllOnceTheEvidenceIsStored) {
  Begin(job::OnStall::kRestart);
  for (int round = 1; round <= 4; ++round) {
    said.clear();
    Beat(Millis(61'000));
    for (const MemberId member : {1, 2, 3}) Answer(member);
    const JournalRecord* stalled = Last(JournalRecord::Kind::kStalled);
    ASSERT_NE(stalled, nullptr);
    int drained = 0;
    for (const Action& one : said) {
      if (one.kind != Kind::kDrain) continue;
      ++drained;
      EXPECT_GE(one.after, stalled->seq);
    }
    if (round == 4) {  // the largest restart.limit is 3
      EXPECT_FALSE(stalled->counted);
      EXPECT_THAT(stalled->text, HasSubstr("no restart is left"));
      break;
    }
    EXPECT_TRUE(stalled->counted);
    ASSERT_EQ(drained, 3);
    for (const MemberId member : {1, 2, 3}) d->End(member, job::Signaled(15));
    EXPECT_EQ(d->core.generation(), round + 1);
    EXPECT_EQ(d->core.attempt_of(0), round);
    for (const MemberId member : {1, 2, 3}) moved_[member] = d->now;
    Beat(Millis(2'000), {1, 2, 3});
    EXPECT_NE(Last(JournalRecord::Kind::kMoving), nullptr);
  }
  for (const MemberId member : {1, 2, 3}) d->End(member, job::Signaled(15));
  ASSERT_TRUE(d->core.verdict());
  EXPECT_EQ(d->core.verdict()->state, JobState::kFailed);
  EXPECT_THAT(d->core.verdict()->reason, HasSubstr("the job stalled: "));
}

TEST_F(Stall, FailEndsTheJobAndSaysWhy) {
  Begin(job::OnStall::kFail);
  Beat(Millis(61'000));
  for (const MemberId member : {1, 2, 3}) Answer(member);
  EXPECT_EQ(Said(Kind::kDrain), 2);  // the server follows
  for (const MemberId member : {1, 2, 3}) d->End(member, job::Exited(0));
  ASSERT_TRUE(d->core.verdict());
  EXPECT_EQ(d->core.verdict()->state, JobState::kFailed);
  EXPECT_THAT(d->core.verdict()->reason, HasSubstr("('limits: stall')"));
}

TEST_F(Stall, IsNeverSaidWithoutALimitNorOfWhoIsNotKnown) {
  job::Job job = JobThat(job::OnStall::kFail);
  job.limits.stall = Millis(0);
  d = std::make_unique<CoreDriver>(job);
  d->JoinAll();
  Beat(Millis(3'600'000));
  EXPECT_EQ(Said(Kind::kInspect), 0);
  // A launcher that does not report activity counts as active.
  Begin(job::OnStall::kFail);
  for (int i = 0; i < 200; ++i) {
    d->Pass(Millis(1000));
    Keep();
    for (MemberId member = 1; member <= 3; ++member) d->Do(LauncherHeartbeat{member});
  }
  EXPECT_EQ(Said(Kind::kInspect), 0);
}

TEST_F(Stall, ACoordinatorThatGoesOnFromTheJournalKnowsOfIt) {
  Begin();
  Beat(Millis(61'000));
  for (const MemberId member : {1, 2, 3}) Answer(member);
  ASSERT_NE(Last(JournalRecord::Kind::kStalled), nullptr);
  const std::vector<JournalRecord> records = d->records;
  d = std::make_unique<CoreDriver>(JobThat(job::OnStall::kReport), true, records);
  for (MemberId member = 1; member <= 3; ++member) {
    const bool server = member == 3;
    d->Do(LauncherJoined{member, server ? "server" : "worker",
                         server ? 0 : static_cast<int>(member) - 1, 0, "i" + std::to_string(member),
                         1, 0, true});
  }
  said.clear();
  Beat(Millis(120'000));
  EXPECT_EQ(Said(Kind::kInspect), 0);  // it was reported already
  EXPECT_EQ(Last(JournalRecord::Kind::kMoving), nullptr);
  Beat(Millis(2'000), {1});
  EXPECT_NE(Last(JournalRecord::Kind::kMoving), nullptr);
}

TEST(StallEvidence, IsBounded) {
  job::Job job = Make(300, 0);
  job.limits.stall = kStall;
  CoreDriver d(job);
  d.JoinAll();
  const auto beat = [&] {
    for (MemberId member = 1; member <= 300; ++member) d.Do(LauncherHeartbeat{member, 0, d.now});
  };
  for (int i = 0; i < 59; ++i) {
    d.Pass(Millis(1000));
    beat();
  }
  d.Pass(Millis(1000));
  ASSERT_EQ(d.Count(Kind::kInspect), 200);
  for (MemberId member = 1; member <= 300; ++member) {
    d.Do(StallDiagnostics{member, 0, d.now, {{"text", std::string(20'000, 'x')}}});
  }
  ASSERT_EQ(d.records.back().kind, JournalRecord::Kind::kStalled);
  EXPECT_EQ(d.records.back().body.at("tasks").as_array().size(), 200u);
  EXPECT_EQ(d.records.back().body.at("more_tasks").to_number<int>(), 100);
  EXPECT_LT(JournalRecordToText(d.records.back()).size(), 40'000u);
}

}  // namespace
}  // namespace shoal::rendezvous
