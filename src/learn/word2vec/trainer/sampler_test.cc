#include "learn/word2vec/trainer/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace shoal::learn::word2vec {
namespace {

void Draw(const Sampler& sampler, Random& random, std::vector<uint32_t>& words) {
  std::vector<uint64_t> draws(words.size());
  sampler.BeginDraw(random, draws);
  sampler.EndDraw(draws, words.data());
}

TEST(Sampler, NoiseFollowsTheThreeQuarterPower) {
  const std::vector<uint64_t> counts = {10000, 1000, 100, 10, 5, 5};
  const Sampler sampler(counts, 1e-3);
  Random random = Random::Of(3, 1);
  std::vector<uint32_t> words(200'000);
  Draw(sampler, random, words);
  std::vector<double> seen(counts.size());
  for (uint32_t word : words) {
    ASSERT_LT(word, counts.size());
    seen[word] += 1.0 / static_cast<double>(words.size());
  }
  double sum = 0;
  for (uint64_t count : counts) sum += std::pow(static_cast<double>(count), 0.75);
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = std::pow(static_cast<double>(counts[i]), 0.75) / sum;
    // Four standard deviations.
    EXPECT_NEAR(seen[i], expected, 4 * std::sqrt(expected / static_cast<double>(words.size())));
  }
}

TEST(Sampler, KeepsWordsAsOftenAsWord2vecDoes) {
  const std::vector<uint64_t> counts = {50'000, 40'000, 900, 100};
  const double total = 91'000;
  const double sample = 1e-2;
  const Sampler sampler(counts, sample);
  Random random = Random::Of(4, 1);
  double expected_sum = 0;
  for (uint32_t word = 0; word < counts.size(); ++word) {
    const double share = static_cast<double>(counts[word]) / total;
    const double keep = std::min(1.0, (std::sqrt(share / sample) + 1) * sample / share);
    expected_sum += keep * static_cast<double>(counts[word]);
    int kept = 0;
    constexpr int kTries = 100'000;
    for (int i = 0; i < kTries; ++i) kept += sampler.ShouldKeep(word, random);
    EXPECT_NEAR(static_cast<double>(kept) / kTries, keep, 4 * std::sqrt(keep / kTries)) << word;
  }
  EXPECT_NEAR(sampler.kept_words(), expected_sum, 1);
}

TEST(Sampler, WithoutThinningEverythingStays) {
  const std::vector<uint64_t> counts = {1'000'000, 1};
  const Sampler sampler(counts, 0);
  Random random = Random::Of(5, 1);
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(sampler.ShouldKeep(0, random));
}

TEST(Sampler, OneWordIsDrawnAlways) {
  const std::vector<uint64_t> counts = {7};
  const Sampler sampler(counts, 1e-3);
  Random random = Random::Of(5, 1);
  std::vector<uint32_t> words(100, 9);
  Draw(sampler, random, words);
  EXPECT_EQ(std::accumulate(words.begin(), words.end(), 0u), 0u);
}

TEST(Random, StreamsDiffer) {
  EXPECT_NE(Random::Of(1, 1).Next(), Random::Of(1, 2).Next());
  EXPECT_NE(Random::Of(1, 1).Next(), Random::Of(2, 1).Next());
  Random random = Random::Of(1, 1);
  random.Next();
  Random resumed(random.state());
  EXPECT_EQ(random.Next(), resumed.Next());
}

TEST(NoiseSupply, FollowsTheNoiseDistribution) {
  std::vector<uint64_t> counts = {16'000, 4'000, 1'000, 250, 60, 15};
  const Sampler sampler(counts, 0);
  double sum = 0;
  for (const uint64_t count : counts) sum += std::pow(static_cast<double>(count), 0.75);
  NoiseSupply supply(&sampler);
  Random random = Random::Of(5, 1);
  supply.Restart(random);
  constexpr int kDraws = 2'000'000;
  std::vector<int> got(counts.size());
  for (int i = 0; i < kDraws; ++i) ++got[supply.Next(random)];
  for (size_t word = 0; word < counts.size(); ++word) {
    const double p = std::pow(static_cast<double>(counts[word]), 0.75) / sum;
    EXPECT_NEAR(got[word], kDraws * p, 5 * std::sqrt(kDraws * p)) << word;
  }
}

TEST(NoiseSupply, AfterARestartTheRandomStateAloneDecides) {
  const Sampler sampler(std::vector<uint64_t>(1000, 7), 0);
  NoiseSupply used(&sampler);
  NoiseSupply fresh(&sampler);
  Random random = Random::Of(3, 1);
  used.Restart(random);
  for (int i = 0; i < 45; ++i) used.Next(random);
  Random same = random;
  used.Restart(random);
  fresh.Restart(same);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(used.Next(random), fresh.Next(same));
}

}  // namespace
}  // namespace shoal::learn::word2vec
