#include "learn/word2vec/exchange/positions.h"

#include <gtest/gtest.h>

#include "learn/word2vec/exchange/exchange_policy.h"

namespace shoal::learn::word2vec {
namespace {

TEST(Positions, BytesComeBack) {
  const std::vector<Position> positions = {{1, 2, 3, 4}, {5, 6, UINT64_MAX, 8}};
  const auto decoded = DecodePositions(EncodePositions(positions));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, positions);
}

TEST(Positions, HostileBytesAreRefused) {
  const std::string good = EncodePositions({{1, 2, 3, 4}});
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(DecodePositions(good.substr(0, size)).status().code(), Code::kDataLoss) << size;
  EXPECT_FALSE(DecodePositions(good + "x").ok());
  std::string many = good;
  many[4] = many[5] = many[6] = many[7] = '\xff';
  EXPECT_FALSE(DecodePositions(many).ok());
  std::string version = good;
  version[0] = 9;
  EXPECT_FALSE(DecodePositions(version).ok());
}

TEST(Positions, OneThreadIsSafeAfterOneSweep) {
  Positions positions({Position{}});
  EXPECT_FALSE(positions.Update(0, {0, 100, 0, 90}, 0));
  auto safe = positions.Update(0, {0, 200, 0, 180}, 1);
  ASSERT_TRUE(safe);
  EXPECT_EQ((*safe)[0].item, 0u);
  EXPECT_FALSE(positions.Update(0, {0, 300, 0, 270}, 1));
  safe = positions.Update(0, {0, 400, 0, 360}, 2);
  ASSERT_TRUE(safe);
  EXPECT_EQ((*safe)[0].item, 200u);
  EXPECT_EQ(positions.current()[0].item, 400u);
}

TEST(Positions, ManyThreadsAreSafeWhenAllHaveSweptSince) {
  Positions positions({Position{}, Position{}});
  EXPECT_FALSE(positions.Update(0, {0, 100, 0, 0}, 1));
  auto safe = positions.Update(1, {0, 50, 0, 0}, 1);
  ASSERT_TRUE(safe);
  EXPECT_EQ((*safe)[0].item, 0u);
  // The snapshot (100, 50) was taken while thread 0 was inside a sweep: that one does not count.
  EXPECT_FALSE(positions.Update(0, {0, 200, 0, 0}, 2));
  EXPECT_FALSE(positions.Update(1, {0, 100, 0, 0}, 3));
  safe = positions.Update(0, {0, 300, 0, 0}, 3);
  ASSERT_TRUE(safe);
  EXPECT_EQ((*safe)[0].item, 100u);
  EXPECT_EQ((*safe)[1].item, 50u);
}

TEST(ExchangePolicy, BoundsTheAccumulatedStep) {
  const Params params;
  // ADR 10: input rows gain alpha × 6 a window and are in 6 windows an occurrence.
  const ExchangePolicy two(params, 2);
  EXPECT_EQ(two.UsesUntilDue(kInput, 0.025), static_cast<uint16_t>(10 / (0.025 * 36)));
  EXPECT_EQ(two.UsesUntilDue(kOutput, 0.025), static_cast<uint16_t>(10 / (0.025 * 6)));
  EXPECT_EQ(two.sweep_words(), 2'375'000u);
  const ExchangePolicy eight(params, 8);
  EXPECT_EQ(eight.UsesUntilDue(kInput, 0.025), 1);
  EXPECT_EQ(eight.sweep_words(), 60'000u);
  // Later, with a smaller rate, rows may wait for more uses.
  EXPECT_GT(two.UsesUntilDue(kInput, 0.0025), 5 * two.UsesUntilDue(kInput, 0.025));
  // What all parties together may move a dot product by is bounded; their mean always counts.
  EXPECT_EQ(eight.Weight(0.5, 2), 1.0f);
  EXPECT_FLOAT_EQ(eight.Weight(1, 2), 0.5f);
  EXPECT_FLOAT_EQ(eight.Weight(100, 2), 1.0f / 8);
  EXPECT_EQ(ExchangePolicy(params, 1).Weight(100, 100), 1.0f);
  EXPECT_EQ(ExchangePolicy(params, 1).UsesUntilDue(kInput, 0.025), UINT16_MAX);
  EXPECT_EQ(ExchangePolicy(params, 2, 2).UsesUntilDue(kOutput, 0.025), 33);
}

TEST(ExchangePolicy, AMovementIsSignificantByWhatAllPartiesTogetherChange) {
  Params params;
  const ExchangePolicy eight(params, 8);
  EXPECT_FALSE(eight.Significant(0, 100));
  EXPECT_FALSE(eight.Significant(0.12, 2));
  EXPECT_TRUE(eight.Significant(0.13, 2));
  // Rows that are multiplied with nothing yet: as if with rows of length 1.
  EXPECT_FALSE(eight.Significant(0.24, 0));
  EXPECT_TRUE(eight.Significant(0.26, 0));
  EXPECT_FALSE(ExchangePolicy(params, 4).Significant(0.13, 2));
  EXPECT_TRUE(ExchangePolicy(params, 4).Significant(0.26, 2));
}

TEST(ExchangePolicy, OneSweepInSomeIsComplete) {
  Params params;
  EXPECT_EQ(ExchangePolicy(params, 8).SweepsUntilComplete(60'000), 64u);
  EXPECT_EQ(ExchangePolicy(params, 8).SweepsUntilComplete(1), 1u);
  EXPECT_EQ(ExchangePolicy(params, 2).SweepsUntilComplete(60'000), 2u);
  EXPECT_EQ(ExchangePolicy(params, 1).SweepsUntilComplete(10'000'000), 1u);
  // Where the user bounds staleness, it is every changed row that is meant.
  params.stale_words = 1000;
  EXPECT_EQ(ExchangePolicy(params, 8).SweepsUntilComplete(60'000), 1u);
}

}  // namespace
}  // namespace shoal::learn::word2vec
