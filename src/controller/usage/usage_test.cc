#include "controller/usage/usage.h"

#include <gtest/gtest.h>

#include "controller/store/sql/test_temp_store.h"
#include "job/spec/json.h"

namespace shoal::controller {
namespace {

constexpr double kHour = 3'600'000;
constexpr double kCoreHour = 1000 * kHour;
constexpr double kGpuHour = 1000 * kHour;

// 2026-11-30 at 22:00 UTC, two hours before December.
WallTime At(double hours) {
  using namespace std::chrono;
  const WallTime begin(sys_days(year(2026) / 11 / 30).time_since_epoch() + 22h);
  return begin + duration_cast<microseconds>(duration<double, std::ratio<3600>>(hours));
}

job::Job Elastic() {
  job::Job job;
  job.name = "train";
  job.queue = "vision";
  job::Role workers;
  workers.name = "worker";
  workers.replicas = 4;
  workers.resources.cpu = 2;
  workers.resources.gpu = 1;
  workers.resources.memory_bytes = int64_t{1} << 30;
  job::Role servers;
  servers.name = "server";
  servers.replicas = 1;
  servers.resources.cpu = 1;
  job.roles = {workers, servers};
  return job;
}

Event Running(WallTime time, const std::string& role, int index,
              job::TaskState state = job::TaskState::kRunning) {
  TaskRecord task;
  task.role = role;
  task.index = index;
  task.state = state;
  return TaskEvent(time, task);
}

class UsageTest : public TempStoreTest {
 protected:
  void Submit(const std::string& id, WallTime time, const std::string& team = "ads") {
    NewJob job{id, "train", "local", job::ToJson(Elastic()), {17, 42, "boot", 1}, time};
    job.team = team;
    job.user = "eve";
    ASSERT_TRUE(store_->Submit(job).ok());
  }
  void Append(const std::string& id, const std::vector<Event>& events) {
    const Status appended = store_->Append(id, events, Durability::kSynced);
    ASSERT_TRUE(appended.ok()) << appended.ToString();
  }
  UsageTable Read(const std::string& from, const std::string& to, WallTime now,
                  std::vector<std::string> teams = {}) {
    const auto table =
        ReadUsage(store_.get(), {*ParseMonth(from), *ParseMonth(to), std::move(teams)}, now);
    EXPECT_TRUE(table.ok()) << table.status().ToString();
    return table.value_or({});
  }
  // A job that is admitted an hour before December, runs from half an hour before, and fails an
  // hour after its beginning.
  void OneOfTwoMonths(const std::string& id) {
    Submit(id, At(0));
    Append(id, {StateEvent(At(1), JobState::kAdmitted, "")});
    for (int i = 0; i < 4; ++i) Append(id, {Running(At(1.5), "worker", i)});
    Append(id, {Running(At(1.5), "server", 0), StateEvent(At(1.5), JobState::kStarting, ""),
                StateEvent(At(1.5), JobState::kRunning, "")});
    Append(id, {EndedEvent(At(3), JobState::kFailed, "worker 0 failed", {})});
  }
};

TEST_F(UsageTest, MonthsAreNumbersWithAText) {
  EXPECT_EQ(MonthText(*ParseMonth("2026-12")), "2026-12");
  EXPECT_EQ(ParseMonth("2026-12")->number + 1, ParseMonth("2027-01")->number);
  EXPECT_EQ(MonthText(MonthOf(At(1.999))), "2026-11");
  EXPECT_EQ(MonthText(MonthOf(At(2))), "2026-12");
  for (const char* wrong :
       {"", "2026", "2026-13", "2026-00", "2026/12", "26-12", "2026-1", "+026-12", "1969-01"})
    EXPECT_FALSE(ParseMonth(wrong).ok()) << wrong;
}

TEST_F(UsageTest, AJobIsSplitAtTheEndOfTheMonthAndIdleUntilItsTasksRun) {
  OneOfTwoMonths("a-1");
  const UsageTable table = Read("2026-11", "2026-12", At(100));
  ASSERT_EQ(table.size(), 2U);
  const auto& [key, november] = *table.begin();
  EXPECT_EQ(key, (UsageKey{*ParseMonth("2026-11"), "ads", "eve", "vision", "local"}));
  EXPECT_EQ(november.jobs, 1);
  EXPECT_NEAR(november.task_ms, 5 * kHour, 1);
  EXPECT_NEAR(november.held[0], 9 * kCoreHour, 1);
  EXPECT_NEAR(november.held[2], 4 * kGpuHour, 1);
  EXPECT_NEAR(november.idle[2], 2 * kGpuHour, 1);
  EXPECT_NEAR(november.failed[2], 4 * kGpuHour, 1);
  const UsageTotals& december = std::next(table.begin())->second;
  EXPECT_NEAR(december.held[2], 4 * kGpuHour, 1);
  EXPECT_NEAR(december.held[1], 4.0 * (1 << 20) * kHour, 1);
  EXPECT_EQ(december.idle[2], 0);
}

TEST_F(UsageTest, SuspendedAndQueuedJobsHoldNothingAndElasticOnesWhatTheyHave) {
  Submit("a-1", At(3));
  Append("a-1", {StateEvent(At(4), JobState::kAdmitted, ""), Running(At(4), "worker", 0)});
  Append("a-1", {StateEvent(At(5), JobState::kSuspended, "preempted")});
  Append("a-1",
         {StateEvent(At(8), JobState::kPending, ""), StateEvent(At(9), JobState::kAdmitted, "")});
  Append("a-1", {ScaledNoteEvent(At(10), "8 workers by the queue", "worker", 8)});
  const UsageTable table = Read("2026-12", "2026-12", At(11));
  ASSERT_EQ(table.size(), 1U);
  // Four workers for an hour, four for another, eight until now.
  EXPECT_NEAR(table.begin()->second.held[2], (4 + 4 + 8) * kGpuHour, 1);
  EXPECT_NEAR(table.begin()->second.idle[2], (3 + 4 + 8) * kGpuHour, 1);
  EXPECT_EQ(table.begin()->second.failed[2], 0);
}

TEST_F(UsageTest, RemovedJobsStayInTheAccountsOnce) {
  OneOfTwoMonths("a-1");
  OneOfTwoMonths("a-2");
  const UsageTable before = Read("2026-11", "2026-12", At(100));
  ASSERT_EQ(before.size(), 2U);
  ASSERT_TRUE(KeepUsage(store_.get(), "a-1", At(50)).ok());
  ASSERT_TRUE(KeepUsage(store_.get(), "a-1", At(50)).ok());  // after a kill before the removal
  ASSERT_TRUE(store_->Remove("a-1").ok());
  ASSERT_TRUE(KeepUsage(store_.get(), "a-2", At(50)).ok());
  ASSERT_TRUE(store_->Remove("a-2").ok());
  ASSERT_TRUE(KeepUsage(store_.get(), "a-2", At(50)).ok());  // is gone
  const UsageTable after = Read("2026-11", "2026-12", At(100));
  ASSERT_EQ(after.size(), 2U);
  for (const auto& [key, totals] : before) {
    EXPECT_EQ(after.at(key).jobs, 2);
    for (size_t r = 0; r < queue::kResources; ++r) {
      EXPECT_NEAR(after.at(key).held[r], totals.held[r], 1e-6 * totals.held[r]);
      EXPECT_NEAR(after.at(key).idle[r], totals.idle[r], 1e-6 * totals.held[r]);
      EXPECT_NEAR(after.at(key).failed[r], totals.failed[r], 1e-6 * totals.held[r]);
    }
  }
}

TEST_F(UsageTest, OnlyTheTeamsAndMonthsThatAreAskedFor) {
  OneOfTwoMonths("a-1");
  Submit("b-1", At(3), "maps");
  Append("b-1", {StateEvent(At(4), JobState::kAdmitted, "")});
  EXPECT_EQ(Read("2026-12", "2026-12", At(5)).size(), 2U);
  EXPECT_EQ(Read("2026-12", "2026-12", At(5), {"maps"}).size(), 1U);
  EXPECT_EQ(Read("2026-11", "2026-11", At(5), {"maps"}).size(), 0U);
  EXPECT_EQ(Read("2027-01", "2027-01", At(5)).size(), 0U);
  EXPECT_FALSE(CheckUsageQuery({*ParseMonth("2026-12"), *ParseMonth("2026-11")}).ok());
  EXPECT_FALSE(CheckUsageQuery({*ParseMonth("1990-01"), *ParseMonth("2026-11")}).ok());
}

}  // namespace
}  // namespace shoal::controller
