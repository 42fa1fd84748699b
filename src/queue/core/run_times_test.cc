#include "queue/core/run_times.h"

#include <gtest/gtest.h>

namespace shoal::queue {
namespace {

using std::chrono::seconds;

TEST(RunTimes, TheMeanOfTheLastTwoRunsIsExpected) {
  RunTimes times;
  EXPECT_EQ(times.Expect("ann train"), Millis(0));
  times.Learn("ann train", seconds(100));
  EXPECT_EQ(times.Expect("ann train"), seconds(100));
  times.Learn("ann train", seconds(200));
  EXPECT_EQ(times.Expect("ann train"), seconds(150));
  times.Learn("ann train", seconds(300));
  EXPECT_EQ(times.Expect("ann train"), seconds(250));
  EXPECT_EQ(times.Expect("bob train"), Millis(0));
}

TEST(RunTimes, ConfidenceIsTheShareOfRunsThatKeptToTheExpectation) {
  RunTimes times;
  EXPECT_DOUBLE_EQ(times.Confidence("x"), 0.5);
  times.Learn("x", seconds(100));  // nothing was expected
  EXPECT_DOUBLE_EQ(times.Confidence("x"), 0.5);
  times.Learn("x", seconds(110));  // a tenth longer
  EXPECT_DOUBLE_EQ(times.Confidence("x"), 2.0 / 3);
  times.Learn("x", seconds(200));  // much longer than 105 s
  EXPECT_DOUBLE_EQ(times.Confidence("x"), 0.5);
  for (int i = 0; i < 16; ++i) times.Learn("x", seconds(155));
  EXPECT_GT(times.Confidence("x"), 0.8);
}

TEST(RunTimes, ItsMemoryIsBounded) {
  RunTimes times;
  for (int i = 0; i < 30'000; ++i) times.Learn(std::to_string(i), seconds(1));
  EXPECT_EQ(times.Expect("0"), Millis(0));
  EXPECT_EQ(times.Expect("29999"), seconds(1));
}

}  // namespace
}  // namespace shoal::queue
