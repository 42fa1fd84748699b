#include "learn/sparse/exchange/exchange_meter.h"

#include <gtest/gtest.h>

namespace shoal::learn::sparse {
namespace {

using std::chrono::milliseconds;

TEST(SparseExchangeMeter, GivesPartsOfTheTimeAndBytesOfAnExample) {
  FakeClock clock;
  ExchangeMeter meter(clock.Now());
  const ExchangeCost at_once = meter.Read(clock.Now(), 0, 100);
  EXPECT_EQ(at_once.exchanges, 0u);
  EXPECT_EQ(at_once.exchange, 0);
  EXPECT_EQ(at_once.bytes_per_example, 0);
  clock.Advance(milliseconds(100));
  meter.Add(milliseconds(10), milliseconds(0));
  meter.Add(milliseconds(30), milliseconds(20));
  clock.Advance(milliseconds(100));
  const ExchangeCost cost = meter.Read(clock.Now(), 50, 600);
  EXPECT_EQ(cost.exchanges, 2u);
  EXPECT_DOUBLE_EQ(cost.exchange, 0.2);
  EXPECT_DOUBLE_EQ(cost.waited, 0.1);
  EXPECT_DOUBLE_EQ(cost.bytes_per_example, 12);
}

}  // namespace
}  // namespace shoal::learn::sparse
