// Compiled once for each instruction set by foreach_target.h, which includes this file repeatedly.
// A vector is a group of kLanes factors, or half of one where registers are shorter; the groups of
// a row are processed in order.
#include "learn/fm/kernels.h"

#include <algorithm>

#include "learn/fm/kernels_scalar.h"

// AVX3_DL has no advantage here; below SSE4 the scalar functions are used.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "learn/fm/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "learn/fm/initial-inl.h"
#include "learn/simd/kernel_dispatch.h"

#if SHOAL_TARGET_HAS_KERNELS

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::fm {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
constexpr uint32_t kAhead = 8;  // rows of state that are prefetched

// The cache lines of a feature's state are at random positions in a large array; its D and G are
// adjacent.
HWY_INLINE void Prefetch(const Rule& rule, const float* state, const Row& row, uint32_t i) {
  if (i >= row.count) return;
  const float* const at = state + size_t{rule.width()} * row.features[i];
  for (uint32_t k = 0; k < rule.width(); k += 16) __builtin_prefetch(at + k);
  __builtin_prefetch(at + rule.width() - 1);
}

float Pairs(const Rule& rule, const float* state, const Row& row, Scratch* scratch) {
  const D d;
  const uint32_t stored = rule.stored;
  if (scratch->factors.size() < ScratchFloats(rule, row.count))
    scratch->factors.resize(ScratchFloats(rule, row.count + row.count / 2));
  float* const sums = scratch->factors.data();
  for (uint32_t i = 0; i < kAhead; ++i) Prefetch(rule, state, row, i);
  V both = hn::Zero(d);
  for (uint32_t f = 0; f < stored; f += static_cast<uint32_t>(hn::Lanes(d))) {
    V sum = hn::Zero(d);
    V squares = hn::Zero(d);
    for (uint32_t i = 0; i < row.count; ++i) {
      if (f == 0) Prefetch(rule, state, row, i + kAhead);
      const uint32_t feature = row.features[i];
      const float* const at = state + size_t{rule.width()} * feature + kLinearFloats + f;
      const V v = hn::Add(hn::LoadU(d, at),
                          Initial(d, feature, rule.salts.data() + f, rule.scales.data() + f));
      hn::StoreU(v, d, sums + size_t{stored} * (i + 1) + f);
      const V part = hn::Mul(v, hn::Set(d, Value(row, i)));
      sum = hn::Add(sum, part);
      squares = hn::MulAdd(part, part, squares);
    }
    hn::StoreU(sum, d, sums + f);
    both = hn::Add(both, hn::Sub(hn::Mul(sum, sum), squares));
  }
  return hn::GetLane(hn::SumOfLanes(d, both)) / 2;
}

void Step(const Rule& rule, float* state, const Row& row, float error, Scratch* scratch) {
  const D d;
  const uint32_t stored = rule.stored;
  const float* const sums = scratch->factors.data();
  const V alpha = hn::Set(d, rule.alpha);
  const V beta = hn::Set(d, rule.beta);
  const V l2 = hn::Set(d, rule.l2);
  for (uint32_t i = 0; i < row.count; ++i) {
    const float value = Value(row, i);
    const V x = hn::Set(d, value);
    const V step = hn::Set(d, error * value);
    float* const at = state + size_t{rule.width()} * row.features[i] + kLinearFloats;
    for (uint32_t f = 0; f < stored; f += static_cast<uint32_t>(hn::Lanes(d))) {
      const V v = hn::LoadU(d, sums + size_t{stored} * (i + 1) + f);
      const V others = hn::NegMulAdd(v, x, hn::LoadU(d, sums + f));
      const V g = hn::MulAdd(step, others, hn::Mul(l2, v));
      Descend(d, g, alpha, beta, at + f, at + stored + f);
    }
  }
}

float Gradients(const Rule& rule, const ReplayRow& at, const Row& row, float* gradients,
                float* shifted) {
  const D d;
  float both = 0, without = 0;
  for (uint32_t f = 0; f < rule.factors; f += static_cast<uint32_t>(hn::Lanes(d))) {
    const auto used = hn::FirstN(d, rule.factors - f);
    V sum = hn::Zero(d), squares = hn::Zero(d);
    V sum_without = hn::Zero(d), squares_without = hn::Zero(d);
    for (uint32_t i = 0; i < row.count; ++i) {
      const size_t begin = i * at.stride + 1 + f;
      const V x = hn::Set(d, Value(row, i));
      const V start = Initial(d, row.features[i], rule.salts.data() + f, rule.scales.data() + f);
      const V weight = hn::IfThenElseZero(used, hn::LoadU(d, at.weights + begin));
      const V shift = hn::IfThenElseZero(used, hn::LoadU(d, at.shift + begin));
      const V part = hn::Mul(hn::Add(weight, start), x);
      const V moved = hn::NegMulAdd(shift, x, part);
      float* const own = gradients + begin;
      hn::StoreU(hn::IfThenElse(used, part, hn::LoadU(d, own)), d, own);
      sum = hn::Add(sum, part);
      squares = hn::MulAdd(part, part, squares);
      sum_without = hn::Add(sum_without, moved);
      squares_without = hn::MulAdd(moved, moved, squares_without);
    }
    for (uint32_t i = 0; i < row.count; ++i) {
      float* const own = gradients + i * at.stride + 1 + f;
      const V part = hn::LoadU(d, own);
      const V g = hn::Mul(hn::Sub(sum, part), hn::Set(d, Value(row, i)));
      hn::StoreU(hn::IfThenElse(used, g, part), d, own);
    }
    both += hn::GetLane(hn::SumOfLanes(d, hn::Sub(hn::Mul(sum, sum), squares)));
    without +=
        hn::GetLane(hn::SumOfLanes(d, hn::Sub(hn::Mul(sum_without, sum_without), squares_without)));
  }
  *shifted += (both - without) / 2;
  return both / 2;
}

}  // namespace

SHOAL_DEFINE_KERNEL_TABLE(Pairs, Step, Gradients);

}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::fm
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET

#if HWY_ONCE
namespace shoal::learn::fm {
SHOAL_DEFINE_KERNEL_CHOICE();
}  // namespace shoal::learn::fm
#endif  // HWY_ONCE
