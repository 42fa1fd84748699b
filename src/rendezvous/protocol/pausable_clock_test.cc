#include "rendezvous/protocol/pausable_clock.h"

#include <gtest/gtest.h>

namespace shoal::rendezvous {
namespace {

using std::chrono::seconds;

TEST(PausableClock, PassesWithTheClockAndNotWhileTheProcessIsStopped) {
  FakeClock clock;
  PausableClock time(&clock, seconds(3));
  const TimePoint begin = time.Now();
  for (int i = 0; i < 10; ++i) {
    clock.Advance(seconds(2));
    EXPECT_EQ(time.Now() - begin, seconds(2) * (i + 1));
  }
  EXPECT_EQ(time.TakeLostTime(), Duration::zero());
  clock.Advance(seconds(41));
  EXPECT_EQ(time.Now() - begin, seconds(20));
  EXPECT_EQ(time.TakeLostTime(), seconds(41));
  EXPECT_EQ(time.TakeLostTime(), Duration::zero());
  clock.Advance(seconds(1));
  EXPECT_EQ(time.Now() - begin, seconds(21));
}

TEST(PausableClock, StandsStillWhileItIsHeld) {
  FakeClock clock;
  PausableClock time(&clock, seconds(3));
  const TimePoint begin = time.Now();
  clock.Advance(seconds(1));
  time.Hold(true);
  for (int i = 0; i < 100; ++i) {
    clock.Advance(seconds(1));
    EXPECT_EQ(time.Now() - begin, seconds(1));
  }
  time.Hold(false);
  clock.Advance(seconds(1));
  EXPECT_EQ(time.Now() - begin, seconds(2));
  EXPECT_EQ(time.TakeLostTime(), Duration::zero()) << "no surprise, nothing to tell";
}

}  // namespace
}  // namespace shoal::rendezvous
