#include "learn/word2vec/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
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
    for (int i = 0; i < kTries; ++i) kept += sampler.Keep(word, random);
    EXPECT_NEAR(static_cast<double>(kept) / kTries, keep, 4 * std::sqrt(keep / kTries)) << word;
  }
  EXPECT_NEAR(sampler.kept_words(), expected_sum, 1);
}

TEST(Sampler, WithoutThinningEverythingStays) {
  const std::vector<uint64_t> counts = {1'000'000, 1};
  const Sampler sampler(counts, 0);
  Random random = Random::Of(5, 1);
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(sampler.Keep(0, random));
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

TEST(NoisePool, EveryWordIsUsedSoOftenAndEachTimeBesideOthers) {
  constexpr uint32_t kVocabulary = 100'000;  // so many that hardly any word is drawn twice
  const Sampler sampler(std::vector<uint64_t>(kVocabulary, 7), 0);
  for (const uint32_t uses : {1u, 2u, 8u}) {
    NoisePool pool(&sampler, uses);
    Random random = Random::Of(3, uses);
    pool.Restart(random);
    std::map<uint32_t, int> count;
    std::map<std::pair<uint32_t, uint32_t>, int> together;  // of groups of five
    std::vector<uint32_t> group;
    for (uint32_t i = 0; i < uses * NoisePool::kWords; ++i) {
      group.push_back(pool.Next(random));
      ++count[group.back()];
      if (group.size() < 5) continue;
      std::sort(group.begin(), group.end());
      for (size_t a = 0; a < 5; ++a)
        for (size_t b = a + 1; b < 5; ++b) ++together[{group[a], group[b]}];
      group.clear();
    }
    int others = 0;
    for (const auto& [word, times] : count) others += times != static_cast<int>(uses);
    EXPECT_LT(others, 30) << uses;  // drawn twice: 1024²/2/100,000 = 5 expected
    int again = 0;
    for (const auto& [pair, times] : together) again += times - 1;
    EXPECT_LT(again, static_cast<int>(together.size()) / 10) << uses;
  }
}

TEST(NoisePool, FollowsTheNoiseDistribution) {
  std::vector<uint64_t> counts = {16'000, 4'000, 1'000, 250, 60, 15};
  const Sampler sampler(counts, 0);
  double sum = 0;
  for (const uint64_t count : counts) sum += std::pow(static_cast<double>(count), 0.75);
  NoisePool pool(&sampler, 8);
  Random random = Random::Of(5, 1);
  pool.Restart(random);
  constexpr int kDraws = 2'000'000;
  std::vector<int> got(counts.size());
  for (int i = 0; i < kDraws; ++i) ++got[pool.Next(random)];
  for (size_t word = 0; word < counts.size(); ++word) {
    const double p = std::pow(static_cast<double>(counts[word]), 0.75) / sum;
    // Eight uses a draw: the standard error is that of an eighth of the draws.
    EXPECT_NEAR(got[word], kDraws * p, 5 * 8 * std::sqrt(kDraws / 8.0 * p)) << word;
  }
}

}  // namespace
}  // namespace shoal::learn::word2vec
