#include "rendezvous/launcher/activity_tracker.h"

#include <gtest/gtest.h>

#include <chrono>

#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ActivityTracker, ALittleProcessorOrNetworkIsNone) {
  const TimePoint start;
  ActivityTracker movement(start);
  double cpu = 0;
  int64_t bytes = 0;
  // A waiting program that polls: 0.8 % of a core, 1000 bytes a second.
  for (int i = 1; i <= 100; ++i) {
    cpu += 0.08;
    bytes += 10'000;
    movement.Sample(start + seconds(10 * i), cpu, bytes);
  }
  EXPECT_EQ(movement.still(start + seconds(1000)), seconds(1000));
  movement.Sample(start + seconds(1010), cpu + 0.11, bytes);
  EXPECT_EQ(movement.still(start + seconds(1012)), seconds(2));
  movement.Sample(start + seconds(1020), cpu + 0.11, bytes + 11'000);
  EXPECT_EQ(movement.still(start + seconds(1020)), seconds(0));
}

TEST(ActivityTracker, PrintingAndReportingAre) {
  const TimePoint start;
  ActivityTracker movement(start);
  movement.RecordActivity(start + seconds(7));
  movement.RecordActivity(start + seconds(3));  // reported late
  EXPECT_EQ(movement.still(start + seconds(9)), seconds(2));
}

TEST(ActivityTracker, ProcessesThatEndAre) {
  const TimePoint start;
  ActivityTracker movement(start);
  movement.Sample(start + seconds(10), 5, 0);
  movement.Sample(start + seconds(20), 1, 0);  // a process whose time was counted has ended
  EXPECT_EQ(movement.still(start + seconds(25)), seconds(5));
}

TEST(ActivitySampleInterval, IsATwentiethWithinBounds) {
  EXPECT_EQ(ActivitySampleInterval(milliseconds(0)), milliseconds(0));
  EXPECT_EQ(ActivitySampleInterval(seconds(5)), seconds(1));
  EXPECT_EQ(ActivitySampleInterval(seconds(100)), seconds(5));
  EXPECT_EQ(ActivitySampleInterval(seconds(36'000)), seconds(30));
}

}  // namespace
}  // namespace shoal::rendezvous
