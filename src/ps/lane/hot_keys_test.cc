// The sampled summary finds what is frequent, whatever comes between.
#include "ps/lane/hot_keys.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace shoal::ps {
namespace {

TEST(HotKeys, FindsTheFrequentKeysOfAZipfDistribution) {
  HotKeys hot;
  std::mt19937_64 random(1);
  std::vector<Key> keys(256);
  uint64_t all = 0;
  for (int batch = 0; batch < 20'000; ++batch) {
    for (Key& key : keys) {
      // Rank r with probability about 1 / r over a million keys.
      key = static_cast<Key>(std::exp(std::generate_canonical<double, 53>(random) * std::log(1e6)));
    }
    hot.Sample(7, keys);
    all += keys.size();
  }
  const double share = static_cast<double>(hot.samples()) / static_cast<double>(all);
  EXPECT_NEAR(share * HotKeys::kSampleInterval, 1.0, 0.02);
  const auto top = hot.Top();
  ASSERT_GE(top.size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(top[i].key, i + 1);
    EXPECT_EQ(top[i].table, 7u);
    // P(key = r) = log((r + 1) / r) / log(1e6).
    const double rank = static_cast<double>(i + 1);
    const double want = std::log((rank + 1) / rank) / std::log(1e6);
    const double got = static_cast<double>(top[i].count) / static_cast<double>(hot.samples());
    EXPECT_NEAR(got, want, 0.15 * want);
  }
}

TEST(HotKeys, ARhythmDoesNotHideAKeyAndNothingIsHotAmongEquals) {
  HotKeys hot;
  std::vector<Key> keys(64);
  for (uint64_t batch = 0; batch < 4000; ++batch) {
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = 1'000'000 + batch * 64 + i;
    keys[batch % 2 == 0 ? 0 : 63] = 5;
    hot.Sample(1, keys);
  }
  const auto top = hot.Top();
  ASSERT_FALSE(top.empty());
  EXPECT_EQ(top[0].key, 5u);
  for (size_t i = 1; i < top.size(); ++i) EXPECT_LE(top[i].count - top[i].error, 2u);
}

}  // namespace
}  // namespace shoal::ps
