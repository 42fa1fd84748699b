// Compiled once for each instruction set by foreach_target.h, which includes this file repeatedly.
// A row's states are first copied to contiguous memory, eight bytes a feature, and copied back at
// the end: unlike scatter instructions, that works in every instruction set (docs/adr/0030).
#include "learn/logistic/kernels.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "learn/logistic/kernels_scalar.h"

// AVX3_DL has no advantage here; below SSE4 the scalar functions are used.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "learn/logistic/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "learn/simd/kernel_dispatch.h"

#if SHOAL_TARGET_HAS_KERNELS

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::logistic {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The rule's constants, broadcast to all lanes.
struct Lanes {
  explicit Lanes(const Rule& rule)
      : alpha(hn::Set(D(), rule.alpha)),
        inverse_alpha(hn::Set(D(), 1 / rule.alpha)),
        beta(hn::Set(D(), rule.beta)),
        beta_l2(hn::Set(D(), rule.beta + rule.alpha * rule.l2)),
        l1(hn::Set(D(), rule.l1)),
        l2(hn::Set(D(), rule.l2)) {}
  V alpha, inverse_alpha, beta, beta_l2, l1, l2;
};

// Copies the row's states and values to `scratch`, padded with zeros to a whole vector.
HWY_INLINE void Collect(const float* state, size_t width, const Row& row, Scratch* scratch) {
  scratch->Reserve(row.count);
  float* const to = scratch->state.data();
  for (uint32_t i = 0; i < row.count; ++i)
    std::memcpy(to + 2 * size_t{i}, state + width * row.features[i], 8);
  std::memset(to + 2 * size_t{row.count}, 0, 2 * Scratch::kPad * sizeof(float));
  if (row.values == nullptr) return;
  std::memcpy(scratch->values.data(), row.values, row.count * sizeof(float));
  std::memset(scratch->values.data() + row.count, 0, Scratch::kPad * sizeof(float));
}

HWY_INLINE void PutBack(const Scratch& scratch, const Row& row, size_t width, float* state) {
  const float* const from = scratch.state.data();
  for (uint32_t i = 0; i < row.count; ++i)
    std::memcpy(state + width * row.features[i], from + 2 * size_t{i}, 8);
}

// x of lanes [i, i + lanes): the values times the scale, or the scale alone if all values are 1.
HWY_INLINE V ValuesAt(const Row& row, const Scratch& scratch, size_t i, V scale) {
  if (row.values == nullptr) return scale;
  return hn::Mul(scale, hn::LoadU(D(), scratch.values.data() + i));
}

HWY_INLINE V WeightOf(const Lanes& rule, V z, V root) {
  const D d;
  const V beyond = hn::Max(hn::Sub(hn::Abs(z), rule.l1), hn::Zero(d));
  const V pull = hn::CopySign(beyond, hn::Neg(z));
  return hn::Div(hn::Mul(pull, rule.alpha), hn::Add(rule.beta_l2, root));
}

// Returns w·x; the row's states, weights and roots of n stay in `scratch`.
HWY_INLINE float CollectAndSum(const Lanes& rule, const float* state, size_t width, const Row& row,
                               Scratch* scratch) {
  const D d;
  Collect(state, width, row, scratch);
  const V scale = hn::Set(d, row.scale);
  V sums = hn::Zero(d);
  for (size_t i = 0; i < row.count; i += hn::Lanes(d)) {
    V z, n;
    hn::LoadInterleaved2(d, scratch->state.data() + 2 * i, z, n);
    const V root = hn::Sqrt(hn::Max(n, hn::Zero(d)));
    const V weight = WeightOf(rule, z, root);
    hn::StoreU(root, d, scratch->roots.data() + i);
    hn::StoreU(weight, d, scratch->weights.data() + i);
    sums = hn::MulAdd(weight, ValuesAt(row, *scratch, i, scale), sums);
  }
  return hn::GetLane(hn::SumOfLanes(d, sums));
}

HWY_INLINE void StepAll(const Lanes& rule, const Row& row, float error, Scratch* scratch) {
  const D d;
  const V step = hn::Set(d, error * row.scale);
  const V tiny = hn::Set(d, kTiny);
  for (size_t i = 0; i < row.count; i += hn::Lanes(d)) {
    V z, n;
    hn::LoadInterleaved2(d, scratch->state.data() + 2 * i, z, n);
    const V root = hn::LoadU(d, scratch->roots.data() + i);
    const V weight = hn::LoadU(d, scratch->weights.data() + i);
    const V g = ValuesAt(row, *scratch, i, step);
    const V square = hn::Mul(g, g);
    const V grown = hn::Add(hn::Max(n, hn::Zero(d)), square);
    const V root_step = hn::Div(square, hn::Max(hn::Add(hn::Sqrt(grown), root), tiny));
    z = hn::NegMulAdd(hn::Mul(root_step, rule.inverse_alpha), weight, hn::Add(z, g));
    hn::StoreInterleaved2(z, grown, d, scratch->state.data() + 2 * i);
  }
}

float Ftrl(const Rule& given, float* state, float* bias, const Row& row, float label,
           Scratch* scratch) {
  const Lanes rule(given);
  const float bias_weight = bias == nullptr ? 0 : FtrlWeight(given, bias);
  const float margin = bias_weight + CollectAndSum(rule, state, 2, row, scratch);
  const float error = sparse::ErrorOf(given.loss, margin, label) * row.weight;
  StepAll(rule, row, error, scratch);
  PutBack(*scratch, row, 2, state);
  if (bias != nullptr) FtrlStep(given, bias, bias_weight, error);
  return margin;
}

float FtrlMargin(const Rule& given, const float* state, uint32_t width, const Row& row,
                 Scratch* scratch) {
  return CollectAndSum(Lanes(given), state, width, row, scratch);
}

void FtrlStepAll(const Rule& given, float* state, uint32_t width, const Row& row, float error,
                 Scratch* scratch) {
  StepAll(Lanes(given), row, error, scratch);
  PutBack(*scratch, row, width, state);
}

float Adagrad(const Rule& given, float* state, float* bias, const Row& row, float label,
              Scratch* scratch) {
  const D d;
  const Lanes rule(given);
  Collect(state, 2, row, scratch);
  const V scale = hn::Set(d, row.scale);
  V sums = hn::Zero(d);
  for (size_t i = 0; i < row.count; i += hn::Lanes(d)) {
    V w, n;
    hn::LoadInterleaved2(d, scratch->state.data() + 2 * i, w, n);
    sums = hn::MulAdd(w, ValuesAt(row, *scratch, i, scale), sums);
  }
  const float margin = (bias == nullptr ? 0 : *bias) + hn::GetLane(hn::SumOfLanes(d, sums));
  const float error = sparse::ErrorOf(given.loss, margin, label) * row.weight;
  const V step = hn::Set(d, error * row.scale);
  for (size_t i = 0; i < row.count; i += hn::Lanes(d)) {
    V w, n;
    hn::LoadInterleaved2(d, scratch->state.data() + 2 * i, w, n);
    const V g = hn::MulAdd(rule.l2, w, ValuesAt(row, *scratch, i, step));
    n = hn::MulAdd(g, g, hn::Max(n, hn::Zero(d)));
    const V rate = hn::Div(rule.alpha, hn::Add(rule.beta, hn::Sqrt(n)));
    const V moved = hn::NegMulAdd(rate, g, w);
    const V kept = hn::Max(hn::NegMulAdd(rate, rule.l1, hn::Abs(moved)), hn::Zero(d));
    hn::StoreInterleaved2(hn::CopySign(kept, moved), n, d, scratch->state.data() + 2 * i);
  }
  PutBack(*scratch, row, 2, state);
  if (bias != nullptr) AdagradStep(given, bias, error);
  return margin;
}

void FtrlWeights(const Rule& given, const float* state, size_t count, float* weights) {
  const D d;
  const Lanes rule(given);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    V z, n;
    hn::LoadInterleaved2(d, state + 2 * i, z, n);
    hn::StoreU(WeightOf(rule, z, hn::Sqrt(hn::Max(n, hn::Zero(d)))), d, weights + i);
  }
  for (; i < count; ++i) weights[i] = FtrlWeight(given, state + 2 * i);
}

}  // namespace

SHOAL_DEFINE_KERNEL_TABLE(Ftrl, Adagrad, FtrlWeights, FtrlMargin, FtrlStepAll);

}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::logistic
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET

#if HWY_ONCE
namespace shoal::learn::logistic {
SHOAL_DEFINE_KERNEL_CHOICE();
}  // namespace shoal::learn::logistic
#endif  // HWY_ONCE
