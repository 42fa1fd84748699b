// The objective of a sweep's member, and which members go on.

#include "controller/groups/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/file.h"
#include "controller/groups/group_record.h"
#include "controller/series/series_files.h"
#include "controller/series/series_log.h"

namespace shoal::controller {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;

job::Sweep SweepBy(const std::string& by, double first, int reduction) {
  job::Sweep sweep;
  sweep.objective = "loss";
  sweep.stop = {by, first, reduction};
  return sweep;
}

TEST(GoesOn, TheBestThirdOfThoseThatHaveArrived) {
  const job::Sweep sweep = SweepBy("", 1, 3);
  EXPECT_TRUE(GoesOn({{0, 9.0}}, 9, sweep));  // too few to compare
  EXPECT_TRUE(GoesOn({{0, 1.0}, {1, 9.0}}, 9, sweep));
  const std::map<size_t, double> three = {{0, 1.0}, {1, 2.0}, {2, 3.0}};
  EXPECT_TRUE(GoesOn(three, 1, sweep));
  EXPECT_FALSE(GoesOn(three, 2, sweep));
  EXPECT_FALSE(GoesOn(three, 3, sweep));
  job::Sweep largest = sweep;
  largest.goal = job::SweepGoal::kMaximize;
  EXPECT_TRUE(GoesOn(three, 3, largest));
  EXPECT_FALSE(GoesOn(three, 1, largest));
}

// Whatever the order of arrival, the best of all goes on; of 81 in a random order about a third do.
TEST(GoesOn, NeverStopsTheBest) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<size_t> order(81);
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::shuffle(order, random);
    std::map<size_t, double> rung;
    size_t on = 0;
    const job::Sweep sweep = SweepBy("", 1, 3);
    for (const size_t member : order) {
      rung[member] = static_cast<double>(member);
      const bool goes = GoesOn(rung, static_cast<double>(member), sweep);
      if (member == 0) {
        EXPECT_TRUE(goes);
      }
      on += goes ? 1 : 0;
    }
    EXPECT_LT(on, 45u);
    EXPECT_GE(on, 14u);
  }
}

class ObjectiveTest : public testing::Test {
 protected:
  // One number of a task at each of the times, in seconds.
  void Write(const std::string& series, const std::vector<std::pair<int64_t, double>>& points) {
    for (const auto& [second, value] : points)
      points_.emplace_back(series, SeriesPoint{second * 1000, value});
  }
  Result<Objective> Read(const job::Sweep& sweep) {
    std::ranges::stable_sort(points_, {}, [](const auto& one) { return one.second.ms; });
    auto log = SeriesLogFile::Create(SeriesLogPath(place_.path(), 1));
    EXPECT_TRUE(log.ok());
    SeriesLogEncoder encoder;
    for (const auto& [series, point] : points_) EXPECT_TRUE(encoder.Add(series, point));
    EXPECT_TRUE(log->Append(encoder.TakeBlock()).ok());
    return ReadObjective(place_.path(), sweep, 10);
  }

  TempDir place_ = std::move(*TempDir::Create());
  std::vector<std::pair<std::string, SeriesPoint>> points_;
};

TEST_F(ObjectiveTest, RungsCountReports) {
  Write("worker-0.loss", {{1, 5}, {2, 4}, {3, 3}, {4, 2}, {5, 1}});
  const auto read = Read(SweepBy("", 2, 2));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(read->rungs, ElementsAre(4, 2));  // at 2 and 4 reports
  EXPECT_EQ(read->last, 1);
}

TEST_F(ObjectiveTest, RungsCountAnotherNumber) {
  Write("worker-0.step", {{1, 100}, {2, 200}, {3, 300}, {4, 450}});
  Write("worker-0.loss", {{1, 5}, {2, 4}, {3, 3}, {4, 2}});
  Write("worker-0.other", {{1, 77}});
  const auto read = Read(SweepBy("step", 150, 3));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(read->rungs, ElementsAre(4, 2));  // at 150 and 450 steps
}

TEST_F(ObjectiveTest, TasksAreAveragedAndTheSlowestReachesTheRung) {
  Write("worker-0.loss", {{1, 5}, {2, 4}, {3, 3}});
  Write("worker-1.loss", {{1, 7}, {2, 6}});
  const auto read = Read(SweepBy("", 1, 2));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(read->rungs, ElementsAre(6, 5));
  EXPECT_THAT(*read->last, DoubleEq(4.5));
}

TEST_F(ObjectiveTest, AJobThatHasReportedNothingHasNone) {
  Write("worker-0.other", {{1, 5}});
  const auto read = Read(SweepBy("", 1, 2));
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->rungs, IsEmpty());
  EXPECT_FALSE(read->last);
  EXPECT_TRUE(ReadObjective(place_.path() / "none", SweepBy("", 1, 2), 10).ok());
}

// ---- Records ------------------------------------------------------------------------------------

GroupRecord AnyGroup() {
  GroupRecord group;
  group.id = "tune-1a2b3c";
  group.name = "tune";
  group.source = {"text", 2, {"a=b"}, "red", "ann", "local", "/x", "/tree"};
  group.triggers.sweep = SweepBy("step", 2, 3);
  group.triggers.sweep.parameters = {{"lr", job::ParameterKind::kChoice, {"1", "2", "3"}, 0, 0, 0}};
  group.triggers.sweep.search = job::SweepSearch::kGrid;
  group.submitted = WallTime(std::chrono::microseconds(5));
  group.state = JobState::kRunning;
  group.members = "se.";
  group.refusals = {{2, "why"}};
  group.rungs = {{{0, 0.5}, {1, 0.75}}, {{0, 0.25}}};
  group.values = {{0, 0.125}};
  return group;
}

TEST(GroupRecord, IsReadBack) {
  const GroupRecord group = AnyGroup();
  const auto again = ParseGroup(group.id, ToJson(group));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(ToJson(*again), ToJson(group));
  EXPECT_EQ(again->rungs, group.rungs);
  EXPECT_EQ(again->source.document, 2u);
}

TEST(GroupRecord, ADamagedRecordIsRefused) {
  const std::string many = "\"" + std::string(20'000, 's') + "\"";
  const std::vector<std::pair<std::string, std::string>> wrong = {{"members", R"("s?")"},
                                                                  {"members", many},
                                                                  {"state", R"("happy")"},
                                                                  {"rungs", "[[[7, 0.5]]]"},
                                                                  {"rungs", "[[[-1, 0.5]]]"},
                                                                  {"values", "7"},
                                                                  {"refusals", R"({"x": "y"})"},
                                                                  {"source", "7"},
                                                                  {"triggers", "[]"},
                                                                  {"submitted", "true"}};
  for (const auto& [field, value] : wrong) {
    json::object body = ToJson(AnyGroup());
    body[field] = *ParseJson(value);
    EXPECT_FALSE(ParseGroup("id", body).ok()) << field << " " << value;
  }
}

TEST(GroupRecord, TheBestMemberIsFirst) {
  GroupRecord group = AnyGroup();
  std::vector<size_t> order;
  for (const MemberView& view : MembersOfGroup(group)) order.push_back(view.index);
  EXPECT_THAT(order, ElementsAre(0, 1, 2));  // 0.125, 0.75, none
  group.triggers.sweep.goal = job::SweepGoal::kMaximize;
  const auto views = MembersOfGroup(group);
  EXPECT_EQ(views[0].index, 1u);
  EXPECT_EQ(views[0].rung, 0);
  EXPECT_EQ(views[0].values.at("lr"), "2");
}

}  // namespace
}  // namespace shoal::controller
