// Compiled once for each instruction set by foreach_target.h, which includes this file repeatedly.
// Vectors cover a feature's factors in memory order, whatever their fields: groups of kLanes
// without a field of the row are skipped, and lanes of other fields have gradient 0.
#include "learn/ffm/kernels.h"

#include <algorithm>

#include "learn/ffm/kernels_scalar.h"
#include "learn/ffm/row_fields.h"
#include "learn/fm/kernels_scalar.h"

// AVX3_DL has no advantage here; below SSE4 the scalar functions are used.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "learn/ffm/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "learn/fm/initial-inl.h"
#include "learn/simd/kernel_dispatch.h"

#if SHOAL_TARGET_HAS_KERNELS

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::ffm {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = fm::HWY_NAMESPACE::D;
using V = fm::HWY_NAMESPACE::V;
using fm::HWY_NAMESPACE::Descend;
using fm::HWY_NAMESPACE::Initial;

constexpr uint32_t kLineFloats = 16;
constexpr uint32_t kAhead = 2;  // features whose state is prefetched

// D of a feature is contiguous: after its first lines the hardware prefetcher continues.
HWY_INLINE void Prefetch(const Rule& rule, const float* state, const Row& row, uint32_t i) {
  if (i >= row.count) return;
  const float* const at = state + size_t{rule.width()} * row.features[i];
  const uint32_t end = std::min(fm::kLinearFloats + rule.stored, 20 * kLineFloats);
  for (uint32_t k = 0; k < end; k += kLineFloats) {
    __builtin_prefetch(at + k);
    __builtin_prefetch(at + rule.stored + k);
  }
}

// Adds v·x to S of the field with index `place`; at: the feature's D.
HWY_INLINE void AddUp(const Rule& rule, const float* at, uint32_t feature, V x,
                      const RowFields& fields, uint32_t place) {
  const D d;
  float* const sums = fields.sums(place);
  for (const uint32_t group : fields.groups()) {
    for (uint32_t f = group; f < group + fm::kLanes; f += static_cast<uint32_t>(hn::Lanes(d))) {
      const V v = hn::Add(hn::LoadU(d, at + f),
                          Initial(d, feature, rule.salts.data() + f, rule.scales.data() + f));
      hn::StoreU(hn::MulAdd(v, x, hn::LoadU(d, sums + f)), d, sums + f);
    }
  }
}

HWY_INLINE float Dot(D d, const float* a, const float* b, const RowFields& fields) {
  V sum = hn::Zero(d);
  for (const uint32_t group : fields.groups()) {
    for (uint32_t f = group; f < group + fm::kLanes; f += static_cast<uint32_t>(hn::Lanes(d)))
      sum = hn::MulAdd(hn::LoadU(d, a + f), hn::LoadU(d, b + f), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

float Pairs(const Rule& rule, const float* state, const Row& row, Scratch* scratch) {
  const D d;
  RowFields fields(rule, row, scratch);
  for (uint32_t i = 0; i < kAhead; ++i) Prefetch(rule, state, row, i);
  float both = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    Prefetch(rule, state, row, i + kAhead);
    const uint32_t feature = row.features[i];
    const uint32_t place = fields.PlaceOf(row.fields[i]);
    const float* const at = state + size_t{rule.width()} * feature + fm::kLinearFloats;
    const float x = fm::Value(row, i);
    AddUp(rule, at, feature, hn::Set(d, x), fields, place);
    if (fields.IsAlone(place)) continue;
    const uint32_t own = row.fields[i] * rule.per_field();
    for (uint32_t slot = own; slot < own + rule.per_field(); ++slot) {
      const float part = (at[slot] + fm::InitialFactor(rule, feature, slot)) * x;
      both -= part * part;
    }
  }
  fields.Transpose();
  for (uint32_t place = 0; place < fields.count(); ++place)
    both += Dot(d, fields.sums(place), fields.others(place), fields);
  return both / 2;
}

void Step(const Rule& rule, float* state, const Row& row, float error, Scratch* scratch) {
  const D d;
  RowFields fields(rule, scratch);
  const V alpha = hn::Set(d, rule.alpha);
  const V beta = hn::Set(d, rule.beta);
  for (uint32_t i = 0; i < row.count; ++i) {
    const uint32_t feature = row.features[i];
    const uint32_t place = fields.PlaceOf(row.fields[i]);
    float* const at = state + size_t{rule.width()} * feature + fm::kLinearFloats;
    const float x = fm::Value(row, i);
    fields.TakeOut(place, feature, at, x);
    const float* const others = fields.others(place);
    const float* const decay = fields.decay();
    const V step = hn::Set(d, error * x);
    for (const uint32_t group : fields.groups()) {
      for (uint32_t f = group; f < group + fm::kLanes; f += static_cast<uint32_t>(hn::Lanes(d))) {
        const V v = hn::Add(hn::LoadU(d, at + f),
                            Initial(d, feature, rule.salts.data() + f, rule.scales.data() + f));
        const V g = hn::MulAdd(step, hn::LoadU(d, others + f), hn::Mul(hn::LoadU(d, decay + f), v));
        Descend(d, g, alpha, beta, at + f, at + rule.stored + f);
      }
    }
    fields.PutBack(place);
  }
}

}  // namespace

SHOAL_DEFINE_KERNEL_TABLE(Pairs, Step);

}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::ffm
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET

#if HWY_ONCE
namespace shoal::learn::ffm {
SHOAL_DEFINE_KERNEL_CHOICE();
}  // namespace shoal::learn::ffm
#endif  // HWY_ONCE
