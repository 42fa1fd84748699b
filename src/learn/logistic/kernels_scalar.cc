#include "learn/logistic/kernels_scalar.h"

#include <algorithm>
#include <cmath>

namespace shoal::learn::logistic {
namespace {

float Value(const Row& row, uint32_t i) {
  return row.values == nullptr ? row.scale : row.scale * row.values[i];
}

float Adagrad(const Rule& rule, float* state, float* bias, const Row& row, float label,
              Scratch* /*scratch*/) {
  float margin = bias == nullptr ? 0 : *bias;
  for (uint32_t i = 0; i < row.count; ++i)
    margin += state[2 * size_t{row.features[i]}] * Value(row, i);
  const float error = sparse::ErrorOf(rule.loss, margin, label) * row.weight;
  for (uint32_t i = 0; i < row.count; ++i)
    AdagradStep(rule, state + 2 * size_t{row.features[i]}, error * Value(row, i));
  if (bias != nullptr) AdagradStep(rule, bias, error);
  return margin;
}

void FtrlWeights(const Rule& rule, const float* state, size_t count, float* weights) {
  for (size_t i = 0; i < count; ++i) weights[i] = FtrlWeight(rule, state + 2 * i);
}

float FtrlMargin(const Rule& rule, const float* state, uint32_t width, const Row& row,
                 Scratch* scratch) {
  scratch->Reserve(row.count);
  float margin = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    scratch->weights[i] = FtrlWeight(rule, state + size_t{width} * row.features[i]);
    margin += scratch->weights[i] * Value(row, i);
  }
  return margin;
}

void FtrlStepAll(const Rule& rule, float* state, uint32_t width, const Row& row, float error,
                 Scratch* scratch) {
  for (uint32_t i = 0; i < row.count; ++i) {
    FtrlStep(rule, state + size_t{width} * row.features[i], scratch->weights[i],
             error * Value(row, i));
  }
}

float Ftrl(const Rule& rule, float* state, float* bias, const Row& row, float label,
           Scratch* scratch) {
  const float bias_weight = bias == nullptr ? 0 : FtrlWeight(rule, bias);
  const float margin = bias_weight + FtrlMargin(rule, state, 2, row, scratch);
  const float error = sparse::ErrorOf(rule.loss, margin, label) * row.weight;
  FtrlStepAll(rule, state, 2, row, error, scratch);
  if (bias != nullptr) FtrlStep(rule, bias, bias_weight, error);
  return margin;
}

constexpr Kernels kTable = {"scalar", Ftrl, Adagrad, FtrlWeights, FtrlMargin, FtrlStepAll};

}  // namespace

const Kernels* ScalarKernels() { return &kTable; }

float FtrlWeight(const Rule& rule, const float* state) {
  const float beyond = std::max(std::abs(state[0]) - rule.l1, 0.0f);
  const float root = std::sqrt(std::max(state[1], 0.0f));
  return -std::copysign(beyond, state[0]) * rule.alpha / (rule.beta + root + rule.alpha * rule.l2);
}

void FtrlStep(const Rule& rule, float* state, float weight, float g) {
  const float n = std::max(state[1], 0.0f);
  const float grown = n + g * g;
  // √grown − √n without cancellation.
  const float root_step = g * g / std::max(std::sqrt(grown) + std::sqrt(n), kTiny);
  state[0] += g - root_step / rule.alpha * weight;
  state[1] = grown;
}

void AdagradStep(const Rule& rule, float* state, float g) {
  const float gradient = g + rule.l2 * state[0];
  state[1] = std::max(state[1], 0.0f) + gradient * gradient;
  const float rate = rule.alpha / (rule.beta + std::sqrt(state[1]));
  const float moved = state[0] - rate * gradient;
  state[0] = std::copysign(std::max(std::abs(moved) - rate * rule.l1, 0.0f), moved);
}

}  // namespace shoal::learn::logistic
