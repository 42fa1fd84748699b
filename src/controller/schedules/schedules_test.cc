// Schedules with an injected clock: which times have a run, over clocks that jump, servers that are
// down, and runs that are unfinished.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "controller/run/test_controller.h"
#include "controller/schedules/job_schedules.h"
#include "controller/store/sqlite_store.h"
#include "job/spec/time_zone.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Stands still, and can be set to any time.
class SetClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(now.time_since_epoch()); }
  WallTime Wall() const override { return now; }

  WallTime now{};
};

WallTime At(int64_t year, int month, int day, int hour, int minute, int second = 0) {
  return WallTime(std::chrono::seconds(job::DaysOf(year, month, day) * 86'400 + hour * 3600 +
                                       minute * 60 + second));
}

class SchedulesTest : public testing::Test {
 protected:
  SchedulesTest() : store_(std::move(*OpenSqliteStore(place_.path() / "shoal.db"))) {
    clock_.now = At(2027, 3, 1, 12, 0);
    StartServer();
  }

  void StartServer() {
    JobSchedulesOptions options;
    options.store = store_.get();
    options.clock = &clock_;
    options.start = [this](const ScheduleRecord&, const std::string& id,
                           const std::vector<std::string>& after) -> Status {
      if (!answer_.ok()) return answer_;
      NewJob job{.id = id, .name = "nightly", .engine = "local", .job = {}, .owner = {}};
      job.time = clock_.now;
      TRY(store_->Submit(job));
      started_.push_back(id + (after.empty() ? "" : " after " + after[0]));
      if (dies_) throw std::runtime_error("killed");
      return Status::Ok();
    };
    options.stop = [this](const std::string& id, const std::string&) { stopped_.push_back(id); };
    schedules_ = std::move(*JobSchedules::Start(std::move(options), false));
  }
  void Put(const std::string& cron, const std::function<void(job::Schedule*)>& change = {}) {
    ScheduleRecord schedule;
    schedule.name = "nightly";
    schedule.stem = "nightly-1a2b3c";
    schedule.source.team = "red";
    schedule.schedule.cron = cron;
    if (change) change(&schedule.schedule);
    const auto put = schedules_->Put(schedule);
    ASSERT_TRUE(put.ok()) << put.status().message();
  }
  void End(const std::string& id, JobState state, const std::string& reason = "") {
    std::vector<Event> events;
    for (const JobState before :
         {JobState::kAdmitted, JobState::kStarting, JobState::kRunning, JobState::kFinishing})
      events.push_back(StateEvent(clock_.now, before, ""));
    events.push_back(EndedEvent(clock_.now, state, reason, {}));
    ASSERT_TRUE(store_->Append(id, events, Durability::kWritten).ok());
  }
  // Ticks at each second from now until `until`, as a server that runs does.
  void RunUntil(WallTime until, Duration step = std::chrono::seconds(1)) {
    for (; clock_.now < until; clock_.now += std::chrono::duration_cast<WallTime::duration>(step))
      schedules_->Tick();
    clock_.now = until;
    schedules_->Tick();
  }
  ScheduleRecord Record() { return *schedules_->Get("red", "nightly"); }

  TempDir place_ = std::move(*TempDir::Create());
  std::unique_ptr<Store> store_;
  SetClock clock_;
  Status answer_;
  bool dies_ = false;
  std::vector<std::string> started_;
  std::vector<std::string> stopped_;
  std::unique_ptr<JobSchedules> schedules_;
};

TEST_F(SchedulesTest, RunsStartAtTheirTimesOnce) {
  Put("*/2 * * * *", [](auto* s) { s->concurrency = job::Concurrency::kAllow; });
  RunUntil(At(2027, 3, 1, 12, 5));
  EXPECT_THAT(started_,
              ElementsAre("nightly-1a2b3c-20270301t1202", "nightly-1a2b3c-20270301t1204"));
  EXPECT_THAT(Record().active,
              ElementsAre("nightly-1a2b3c-20270301t1202", "nightly-1a2b3c-20270301t1204"));
  End("nightly-1a2b3c-20270301t1202", JobState::kSucceeded);
  End("nightly-1a2b3c-20270301t1204", JobState::kFailed, "exit code 7");
  RunUntil(At(2027, 3, 1, 12, 5, 30));
  EXPECT_THAT(Record().active, IsEmpty());
  EXPECT_EQ(Record().successes, 1);
  EXPECT_EQ(Record().failures, 1);
  EXPECT_EQ(Record().last_reason, "nightly-1a2b3c-20270301t1204 failed: exit code 7");
  EXPECT_EQ(*NextTime(Record(), clock_.now), At(2027, 3, 1, 12, 6));
}

TEST_F(SchedulesTest, AnUnfinishedRunIsForbidAllowOrReplace) {
  Put("* * * * *");
  RunUntil(At(2027, 3, 1, 12, 2));
  EXPECT_THAT(started_, ElementsAre("nightly-1a2b3c-20270301t1201"));
  EXPECT_EQ(Record().skipped, 1);
  EXPECT_THAT(Record().last_reason, HasSubstr("concurrency is forbid"));
  Put("* * * * *", [](auto* s) { s->concurrency = job::Concurrency::kReplace; });
  RunUntil(At(2027, 3, 1, 12, 3));
  EXPECT_THAT(stopped_, ElementsAre("nightly-1a2b3c-20270301t1201"));
  // It waits for the end of the one that it replaces.
  EXPECT_EQ(started_.back(), "nightly-1a2b3c-20270301t1203 after nightly-1a2b3c-20270301t1201");
  End("nightly-1a2b3c-20270301t1201", JobState::kCancelled);
  End("nightly-1a2b3c-20270301t1203", JobState::kSucceeded);
  RunUntil(At(2027, 3, 1, 12, 4));
  EXPECT_EQ(started_.back(), "nightly-1a2b3c-20270301t1204");
}

TEST_F(SchedulesTest, ADownServerMissesRuns) {
  Put("0 * * * *");
  schedules_.reset();
  clock_.now = At(2027, 3, 1, 15, 20);  // 13:00, 14:00 and 15:00 have passed
  StartServer();
  schedules_->Tick();
  EXPECT_THAT(started_, ElementsAre("nightly-1a2b3c-20270301t1500"));
  EXPECT_EQ(Record().skipped, 2);
  End("nightly-1a2b3c-20270301t1500", JobState::kSucceeded);
  RunUntil(At(2027, 3, 1, 15, 59));
  EXPECT_EQ(started_.size(), 1u);

  Put("0 * * * *", [](auto* s) { s->missed = job::MissedRuns::kSkip; });
  schedules_.reset();
  clock_.now = At(2027, 3, 1, 17, 20);
  StartServer();
  schedules_->Tick();
  EXPECT_EQ(started_.size(), 1u);
  EXPECT_EQ(Record().skipped, 4);
  EXPECT_THAT(Record().last_reason, HasSubstr("missed is skip"));
  RunUntil(At(2027, 3, 1, 18, 0));
  EXPECT_EQ(started_.back(), "nightly-1a2b3c-20270301t1800");

  End("nightly-1a2b3c-20270301t1800", JobState::kSucceeded);
  Put("0 * * * *", [](auto* s) { s->start_deadline = std::chrono::minutes(10); });
  schedules_.reset();
  clock_.now = At(2027, 3, 1, 19, 11);
  StartServer();
  schedules_->Tick();
  EXPECT_EQ(started_.size(), 2u);
  EXPECT_THAT(Record().last_reason, HasSubstr("start_deadline"));
}

// A server that dies after the run is stored, and before the schedule is.
TEST_F(SchedulesTest, ARunIsNotStartedTwiceByTheNextServer) {
  Put("0 * * * *");
  clock_.now = At(2027, 3, 1, 13, 0);
  dies_ = true;
  EXPECT_THROW(schedules_->Tick(), std::runtime_error);
  dies_ = false;
  schedules_.reset();
  clock_.now += std::chrono::seconds(20);
  StartServer();
  schedules_->Tick();
  EXPECT_THAT(started_, ElementsAre("nightly-1a2b3c-20270301t1300"));
  EXPECT_THAT(Record().active, ElementsAre("nightly-1a2b3c-20270301t1300"));
}

TEST_F(SchedulesTest, AClockThatJumps) {
  Put("0 * * * *", [](auto* s) { s->concurrency = job::Concurrency::kAllow; });
  RunUntil(At(2027, 3, 1, 13, 0));
  ASSERT_EQ(started_.size(), 1u);
  // Back by 30 minutes: 13:00 comes again, without a run.
  clock_.now = At(2027, 3, 1, 12, 30);
  RunUntil(At(2027, 3, 1, 13, 30), std::chrono::seconds(10));
  EXPECT_EQ(started_.size(), 1u);
  RunUntil(At(2027, 3, 1, 14, 0), std::chrono::seconds(10));
  EXPECT_EQ(started_.size(), 2u);
  // Forward by days: one run.
  clock_.now = At(2027, 3, 9, 9, 30);
  schedules_->Tick();
  EXPECT_EQ(started_.size(), 3u);
  EXPECT_EQ(started_.back(), "nightly-1a2b3c-20270309t0900");
  // That was wrong: back by days, and the schedule goes on.
  clock_.now = At(2027, 3, 1, 14, 30);
  RunUntil(At(2027, 3, 1, 15, 0), std::chrono::seconds(10));
  EXPECT_EQ(started_.size(), 4u);
  EXPECT_EQ(started_.back(), "nightly-1a2b3c-20270301t1500");
}

// Clocks in Berlin are set forward on 2027-03-28, and back on 2027-10-31, at 01:00 UTC.
TEST_F(SchedulesTest, SummerTimeHasOneRunADay) {
  clock_.now = At(2027, 3, 27, 12, 0);
  Put("30 2 * * *", [](auto* s) {
    s->time_zone = "Europe/Berlin";
    s->concurrency = job::Concurrency::kAllow;
  });
  RunUntil(At(2027, 3, 29, 12, 0), std::chrono::minutes(1));
  EXPECT_THAT(started_,
              ElementsAre("nightly-1a2b3c-20270328t0100", "nightly-1a2b3c-20270329t0030"));
  started_.clear();
  clock_.now = At(2027, 10, 30, 12, 0);
  Put("30 2 * * *", [](auto* s) {
    s->time_zone = "Europe/Berlin";
    s->concurrency = job::Concurrency::kAllow;
  });
  RunUntil(At(2027, 11, 1, 12, 0), std::chrono::minutes(1));
  EXPECT_THAT(started_,
              ElementsAre("nightly-1a2b3c-20271031t0030", "nightly-1a2b3c-20271101t0130"));
}

TEST_F(SchedulesTest, ARunThatCannotBeSubmitted) {
  Put("0 * * * *");
  answer_ = Unavailable("the disk is full");
  RunUntil(At(2027, 3, 1, 13, 0, 30));
  EXPECT_EQ(Record().failures, 0);
  answer_ = Status::Ok();
  RunUntil(At(2027, 3, 1, 13, 0, 36));
  EXPECT_THAT(started_, ElementsAre("nightly-1a2b3c-20270301t1300"));
  End("nightly-1a2b3c-20270301t1300", JobState::kSucceeded);
  answer_ = PermissionDenied("image: not allowed");
  RunUntil(At(2027, 3, 1, 14, 0, 2));
  EXPECT_EQ(Record().failures, 1);
  EXPECT_EQ(Record().last_reason,
            "nightly-1a2b3c-20270301t1400 could not be submitted: image: not allowed");
  EXPECT_EQ(*NextTime(Record(), clock_.now), At(2027, 3, 1, 15, 0));
}

TEST_F(SchedulesTest, CommandsOfPeople) {
  Put("0 * * * *", [](auto* s) { s->enabled = false; });
  RunUntil(At(2027, 3, 1, 13, 30), std::chrono::minutes(1));
  EXPECT_THAT(started_, IsEmpty());
  EXPECT_FALSE(*NextTime(Record(), clock_.now));
  const auto run = schedules_->RunNow("red", "nightly");
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(*run, "nightly-1a2b3c-20270301t133000");
  EXPECT_EQ(schedules_->RunNow("blue", "nightly").status().code(), Code::kNotFound);
  EXPECT_THAT(Record().active, ElementsAre(*run));
  ASSERT_TRUE(schedules_->Remove("red", "nightly", true).ok());
  EXPECT_THAT(stopped_, ElementsAre(*run));
  EXPECT_EQ(schedules_->Remove("red", "nightly", true).status().code(), Code::kNotFound);
  EXPECT_THAT(*schedules_->List(), IsEmpty());
}

TEST(ScheduleRecord, IsReadBackAndChecked) {
  ScheduleRecord schedule;
  schedule.name = "nightly";
  schedule.stem = "nightly-1a2b3c";
  schedule.source = {"text", std::nullopt, {}, "red", "ann", "local", "", ""};
  schedule.schedule.cron = "0 * * * *";
  schedule.active = {"a", "b"};
  schedule.decided = At(2027, 3, 1, 12, 0);
  const json::object body = ToJson(schedule);
  const auto again = ParseSchedule(body);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(ToJson(*again), body);
  for (const auto& field : body) {
    json::object wrong = body;
    wrong[field.key()] = json::array{1};
    EXPECT_FALSE(ParseSchedule(wrong).ok()) << field.key();
  }
}

}  // namespace
}  // namespace shoal::controller
