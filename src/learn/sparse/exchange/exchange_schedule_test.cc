// When exchanges are due, on a clock that the tests turn: what one costs decides how many there
// are.
#include "learn/sparse/exchange/exchange_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shoal::learn::sparse {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Played {
  ExchangeCost cost;
  uint64_t longest = 0;  // round
  uint64_t last = 0;     // round
};

// A worker that trains `plan.examples`, one a microsecond, in blocks of 32, with exchanges of this
// cost after a wait for its turn.
Played Play(const ExchangePlan& plan, Duration exchange, Duration wait = {}) {
  FakeClock clock;
  ExchangeSchedule schedule(plan, &clock);
  Played played;
  uint64_t exchanged = 0, unexchanged = 0;
  while (exchanged < plan.examples) {
    const uint64_t block = std::min<uint64_t>(32, plan.examples - exchanged - unexchanged);
    clock.Advance(microseconds(block));
    unexchanged += block;
    const bool last = exchanged + unexchanged == plan.examples;
    if (!schedule.IsDue(exchanged, unexchanged, last, false)) continue;
    const TimePoint asked = clock.Now();
    clock.Advance(wait);
    schedule.Begin(asked);
    clock.Advance(exchange);
    schedule.EndTurn();
    played.longest = std::max(played.longest, unexchanged);
    played.last = unexchanged;
    exchanged += std::exchange(unexchanged, 0);
    schedule.End(exchanged);
  }
  played.cost = schedule.MeasureCost(exchanged, 0);
  return played;
}

TEST(SparseExchangeSchedule, RoundsAreAtMostASixteenthHoweverLongAnExchangeTakes) {
  const Played played = Play({true, 160'000, 0}, milliseconds(500));
  EXPECT_LE(played.longest, 160'000u / 16 + 32);
  EXPECT_LE(played.last, 160'000u / 16 + 32);
  EXPECT_GT(played.cost.exchange, 0.9);
  EXPECT_GE(played.cost.exchanges, 30u);
  EXPECT_LE(played.cost.exchanges, 45u);
}

TEST(SparseExchangeSchedule, QuickExchangesAreMadeEarlierForATenthOfTheTime) {
  const Played played = Play({true, 1'600'000, 0}, microseconds(100));
  EXPECT_GT(played.cost.exchanges, 1000u);
  EXPECT_LE(played.cost.exchange, 0.11);
  EXPECT_GE(played.cost.exchange, 0.08);
  EXPECT_LE(played.longest, 1'600'000u / 1000);
}

TEST(SparseExchangeSchedule, WaitingForATurnCountsAsWhatAnExchangeCosts) {
  const Played alone = Play({true, 1'600'000, 0}, microseconds(100));
  const Played waits = Play({true, 1'600'000, 0}, microseconds(100), microseconds(900));
  EXPECT_LE(waits.cost.exchange + waits.cost.waited, 0.12);
  EXPECT_LT(waits.cost.exchanges, alone.cost.exchanges / 5);
}

// Whatever the link: it is exceeded only by what the first exchanges cost before it was known.
TEST(SparseExchangeSchedule, AShareBoundsTheTimeOfExchanges) {
  for (const double share : {0.05, 0.1, 0.3}) {
    for (const Duration exchange : {microseconds(50), microseconds(1000), microseconds(20'000)}) {
      for (const Duration wait : {microseconds(0), microseconds(2000)}) {
        const Played played = Play({true, 2'000'000, share}, exchange, wait);
        const double cost = played.cost.exchange + played.cost.waited;
        EXPECT_LE(cost, 1.1 * share + 0.001)
            << share << " " << exchange.count() << " " << wait.count();
        EXPECT_GE(played.cost.exchanges, 2u);
      }
    }
  }
}

// What a share allows is used: rounds are no longer than quality asks for.
TEST(SparseExchangeSchedule, AShareThatQualityDoesNotExceedChangesNothing) {
  const Played plain = Play({true, 2'000'000, 0}, microseconds(5000));
  const Played bounded = Play({true, 2'000'000, 0.2}, microseconds(5000));
  ASSERT_LT(plain.cost.exchange, 0.2);
  EXPECT_EQ(bounded.cost.exchanges, plain.cost.exchanges);
  EXPECT_LE(bounded.longest, 2'000'000u / 16 + 32);
}

TEST(SparseExchangeSchedule, TrainingBetweenTheHalvesOfAnExchangeIsNoCost) {
  FakeClock clock;
  ExchangeSchedule schedule({true, 100'000, 0}, &clock);
  schedule.Begin(clock.Now());
  clock.Advance(milliseconds(2));
  schedule.CountTraining();
  clock.Advance(milliseconds(7));
  schedule.CountTraining();
  clock.Advance(milliseconds(1));
  schedule.EndTurn();
  EXPECT_EQ(schedule.turn(), milliseconds(10));
  schedule.End(1000);
  EXPECT_DOUBLE_EQ(schedule.MeasureCost(1, 0).exchange, 0.3);
}

TEST(SparseExchangeSchedule, WithoutPacingEveryRoundEndsWithAnExchange) {
  FakeClock clock;
  ExchangeSchedule schedule({false, 100, 0.1}, &clock);
  EXPECT_TRUE(schedule.IsDue(0, 1, false, false));
  EXPECT_TRUE(schedule.must());
  EXPECT_EQ(schedule.next_round(), 100u);
}

}  // namespace
}  // namespace shoal::learn::sparse
