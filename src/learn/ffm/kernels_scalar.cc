#include "learn/ffm/kernels_scalar.h"

#include <algorithm>
#include <cmath>

#include "learn/fm/kernels_scalar.h"

namespace shoal::learn::ffm {
namespace {

// Writes ∂/∂v of every feature to scratch->factors, [count × stored], and to scratch->places which
// vectors occur in a pair, [count × fields].
float Pairs(const Rule& rule, const float* state, const Row& row, Scratch* scratch) {
  const uint32_t k = rule.per_field();
  scratch->factors.assign(size_t{rule.stored} * row.count, 0.0f);
  scratch->places.assign(size_t{rule.fields} * row.count, 0);
  const auto factor = [&](uint32_t i, uint32_t slot) {
    const uint32_t feature = row.features[i];
    return state[size_t{rule.width()} * feature + fm::kLinearFloats + slot] +
           fm::InitialFactor(rule, feature, slot);
  };
  float sum = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    for (uint32_t j = i + 1; j < row.count; ++j) {
      const uint32_t fi = row.fields[i], fj = row.fields[j];
      const float x = fm::Value(row, i) * fm::Value(row, j);
      scratch->places[size_t{rule.fields} * i + fj] = 1;
      scratch->places[size_t{rule.fields} * j + fi] = 1;
      for (uint32_t d = 0; d < k; ++d) {
        const float a = factor(i, fj * k + d), b = factor(j, fi * k + d);
        scratch->factors[size_t{rule.stored} * i + fj * k + d] += x * b;
        scratch->factors[size_t{rule.stored} * j + fi * k + d] += x * a;
        sum += x * a * b;
      }
    }
  }
  return sum;
}

void Step(const Rule& rule, float* state, const Row& row, float error, Scratch* scratch) {
  const uint32_t k = rule.per_field();
  for (uint32_t i = 0; i < row.count; ++i) {
    const uint32_t feature = row.features[i];
    float* const d = state + size_t{rule.width()} * feature + fm::kLinearFloats;
    float* const squares = d + rule.stored;
    for (uint32_t slot = 0; slot < rule.factors; ++slot) {
      if (scratch->places[size_t{rule.fields} * i + slot / k] == 0) continue;
      const float v = d[slot] + fm::InitialFactor(rule, feature, slot);
      const float g = error * scratch->factors[size_t{rule.stored} * i + slot] + rule.l2 * v;
      squares[slot] = std::max(squares[slot], 0.0f) + g * g;
      d[slot] -= rule.alpha * g / (rule.beta + std::sqrt(squares[slot]));
    }
  }
}

constexpr Kernels kTable = {"scalar", Pairs, Step};

}  // namespace

const Kernels* ScalarKernels() { return &kTable; }

}  // namespace shoal::learn::ffm
