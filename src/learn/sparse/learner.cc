#include "learn/sparse/learner.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shoal::learn::sparse {
namespace {

constexpr uint32_t kTogether = 8;  // factors

// The part of the margin that the factors [first, first + kTogether) have.
float Pairs(const model::FactorModel& model, const Row& row, uint32_t first) {
  const uint32_t n = std::min(kTogether, model.factors - first);
  std::array<float, kTogether> sums{};
  std::array<float, kTogether> squares{};
  for (uint32_t i = 0; i < row.count; ++i) {
    const float x = row.scale * (row.values == nullptr ? 1.0f : row.values[i]);
    const float* const v = model.Row(row.features[i]) + first;
    for (uint32_t f = 0; f < n; ++f) {
      const float part = v[f] * x;
      sums[f] += part;
      squares[f] += part * part;
    }
  }
  float pairs = 0;
  for (uint32_t f = 0; f < n; ++f) pairs += sums[f] * sums[f] - squares[f];
  return pairs / 2;
}

float LinearMargin(const float* weights, const Row& row) {
  float sums[4] = {};
  uint32_t i = 0;
  if (row.values == nullptr) {
    for (; i + 4 <= row.count; i += 4) {
      for (uint32_t k = 0; k < 4; ++k) sums[k] += weights[row.features[i + k]];
    }
    for (; i < row.count; ++i) sums[0] += weights[row.features[i]];
  } else {
    for (; i < row.count; ++i) sums[i % 4] += weights[row.features[i]] * row.values[i];
  }
  return row.scale * (sums[0] + sums[1] + sums[2] + sums[3]);
}

}  // namespace

float Margin(const model::FactorModel& model, const Row& row) {
  float margin = model.linear.bias + LinearMargin(model.linear.weights.data(), row);
  for (uint32_t f = 0; f < model.factors; f += kTogether) margin += Pairs(model, row, f);
  return margin;
}

float Probability(float margin) { return 1 / (1 + std::exp(-margin)); }

float UnitScale(const float* values, size_t count) {
  double sum = static_cast<double>(count);
  if (values != nullptr) {
    sum = 0;
    for (size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  }
  const auto scale = static_cast<float>(1 / std::sqrt(sum));
  return std::isfinite(scale) ? scale : 1.0f;
}

}  // namespace shoal::learn::sparse
