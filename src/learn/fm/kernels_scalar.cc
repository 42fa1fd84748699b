#include "learn/fm/kernels_scalar.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shoal::learn::fm {
namespace {

float Pairs(const Rule& rule, const float* state, const Row& row, Scratch* scratch) {
  const uint32_t stored = rule.stored;
  scratch->factors.resize(std::max(scratch->factors.size(), ScratchFloats(rule, row.count)));
  float* const sums = scratch->factors.data();
  std::fill_n(sums, stored, 0.0f);
  float squares = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    const float x = Value(row, i);
    const float* const d = state + size_t{rule.width()} * row.features[i] + kLinearFloats;
    float* const v = sums + size_t{stored} * (i + 1);
    for (uint32_t f = 0; f < stored; ++f) {
      v[f] = d[f] + InitialFactor(rule, row.features[i], f);
      sums[f] += v[f] * x;
      squares += v[f] * x * (v[f] * x);
    }
  }
  float both = 0;
  for (uint32_t f = 0; f < stored; ++f) both += sums[f] * sums[f];
  return (both - squares) / 2;
}

void Step(const Rule& rule, float* state, const Row& row, float error, Scratch* scratch) {
  const uint32_t stored = rule.stored;
  const float* const sums = scratch->factors.data();
  for (uint32_t i = 0; i < row.count; ++i) {
    const float x = Value(row, i);
    float* const d = state + size_t{rule.width()} * row.features[i] + kLinearFloats;
    float* const squares = d + stored;
    const float* const v = sums + size_t{stored} * (i + 1);
    for (uint32_t f = 0; f < stored; ++f) {
      const float g = error * x * (sums[f] - v[f] * x) + rule.l2 * v[f];
      squares[f] = std::max(squares[f], 0.0f) + g * g;
      d[f] -= rule.alpha * g / (rule.beta + std::sqrt(squares[f]));
    }
  }
}

float Gradients(const Rule& rule, const ReplayRow& at, const Row& row, float* gradients,
                float* shifted) {
  float both = 0, without = 0;
  for (uint32_t first = 0; first < rule.factors; first += kLanes) {
    const uint32_t n = std::min(kLanes, rule.factors - first);
    std::array<float, kLanes> sums{}, sums_without{}, squares{}, squares_without{};
    for (uint32_t i = 0; i < row.count; ++i) {
      const float x = Value(row, i);
      const size_t begin = i * at.stride + 1 + first;
      for (uint32_t f = 0; f < n; ++f) {
        const float v = at.weights[begin + f] + InitialFactor(rule, row.features[i], first + f);
        const float part = v * x, moved = part - at.shift[begin + f] * x;
        gradients[begin + f] = part;
        sums[f] += part;
        squares[f] += part * part;
        sums_without[f] += moved;
        squares_without[f] += moved * moved;
      }
    }
    for (uint32_t i = 0; i < row.count; ++i) {
      float* const own = gradients + i * at.stride + 1 + first;
      for (uint32_t f = 0; f < n; ++f) own[f] = Value(row, i) * (sums[f] - own[f]);
    }
    for (uint32_t f = 0; f < n; ++f) {
      both += sums[f] * sums[f] - squares[f];
      without += sums_without[f] * sums_without[f] - squares_without[f];
    }
  }
  *shifted += (both - without) / 2;
  return both / 2;
}

constexpr Kernels kTable = {"scalar", Pairs, Step, Gradients};

}  // namespace

const Kernels* ScalarKernels() { return &kTable; }

Rule MakeRule(const RuleOptions& options) {
  Rule rule;
  rule.alpha = options.alpha;
  rule.beta = options.beta;
  rule.l2 = options.l2;
  rule.factors = options.factors;
  rule.fields = options.fields;
  rule.stored = (options.factors + kLanes - 1) / kLanes * kLanes;
  const auto low = static_cast<uint32_t>(options.seed);
  const auto high = static_cast<uint32_t>(options.seed >> 32);
  // Uniform in ±√3·init; 24 bits of a hash are that many parts of 2²³.
  const float scale = options.init * std::sqrt(3.0f) * 0x1p-23f;
  for (uint32_t f = 0; f < rule.stored; ++f) {
    rule.salts.push_back(Mix32(Mix32(Mix32(f + 1) ^ low) + high));
    rule.scales.push_back(f < rule.factors ? scale : 0);
  }
  return rule;
}

float InitialFactor(const Rule& rule, uint32_t feature, uint32_t factor) {
  const uint32_t bits = Mix32(feature ^ rule.salts[factor]) >> 8;
  return static_cast<float>(static_cast<int32_t>(bits) - (1 << 23)) * rule.scales[factor];
}

}  // namespace shoal::learn::fm
