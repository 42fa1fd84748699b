#include "learn/word2vec/trainer/sampler.h"

#include <algorithm>
#include <cmath>

namespace shoal::learn::word2vec {
namespace {

constexpr double kAlways = 4294967295.0;  // 2³² − 1

// x^¾ by square roots, which are exactly rounded on all machines; pow is not.
double ThreeQuarters(double x) { return std::sqrt(x) * std::sqrt(std::sqrt(x)); }

}  // namespace

Random Random::Of(uint64_t seed, uint64_t stream) {
  Random random(seed * 0x9e3779b97f4a7c15 + stream * 0xd1342543de82ef95 + 0x632be59bd9b4e019);
  return Random(random.Next() ^ (random.Next() << 1));
}

Sampler::Sampler(std::span<const uint64_t> counts, double sample) {
  double total = 0;
  for (uint64_t count : counts) total += static_cast<double>(count);
  keep_.reserve(counts.size());
  for (uint64_t count : counts) {
    const double share = sample > 0 ? static_cast<double>(count) / (sample * total) : 0;
    const double keep = share > 0 ? std::min(1.0, (std::sqrt(share) + 1) / share) : 1.0;
    keep_.push_back(static_cast<uint32_t>(keep * kAlways));
    kept_words_ += keep * static_cast<double>(count);
  }

  const size_t n = counts.size();
  std::vector<double> height(n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += height[i] = ThreeQuarters(static_cast<double>(counts[i]));
  std::vector<uint32_t> low;
  std::vector<uint32_t> high;
  for (size_t i = 0; i < n; ++i) {
    height[i] *= static_cast<double>(n) / sum;
    (height[i] < 1 ? low : high).push_back(static_cast<uint32_t>(i));
  }
  columns_.resize(n);
  for (size_t i = 0; i < n; ++i) columns_[i] = {UINT32_MAX, static_cast<uint32_t>(i)};
  while (!low.empty() && !high.empty()) {
    const uint32_t small = low.back();
    const uint32_t large = high.back();
    low.pop_back();
    columns_[small] = {static_cast<uint32_t>(height[small] * kAlways), large};
    height[large] -= 1 - height[small];
    if (height[large] >= 1) continue;
    high.pop_back();
    low.push_back(large);
  }
}

void Sampler::BeginDraw(Random& random, std::span<uint64_t> draws) const {
  const Column* const columns = columns_.data();
  for (uint64_t& bits : draws) {
    bits = random.Next();
    __builtin_prefetch(columns + ColumnOf(bits));
  }
}

void Sampler::EndDraw(std::span<const uint64_t> draws, uint32_t* words) const {
  const Column* const columns = columns_.data();
  for (const uint64_t bits : draws) {
    const uint32_t index = ColumnOf(bits);
    const Column column = columns[index];
    *words++ = static_cast<uint32_t>(bits) <= column.below ? index : column.other;
  }
}

}  // namespace shoal::learn::word2vec
