// Compiled once for each instruction set by foreach_target.h, which includes this file again and
// again.
#include "learn/sparse/exchange/merge_kernels.h"

#include <algorithm>

#include "learn/sparse/exchange/merge_kernels_scalar.h"

// AVX3_DL brings nothing here, and below SSE4 the scalar functions serve.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "learn/sparse/exchange/merge_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "learn/simd/kernel_dispatch.h"

#if SHOAL_TARGET_HAS_KERNELS

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::sparse {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using DPairs = hn::ScalableTag<float>;
using DRun = hn::CappedTag<float, 8>;  // factors come in groups of so many

// A slot's rule in every lane, and the functions of learner.h and replay.h.
template <typename D>
struct Lanes {
  using V = hn::Vec<D>;
  explicit Lanes(const Slot& slot)
      : ftrl(slot.ftrl),
        alpha(hn::Set(D(), slot.rate.alpha)),
        inverse_alpha(hn::Set(D(), 1 / slot.rate.alpha)),
        beta(hn::Set(D(), slot.rate.beta)),
        beta_l2(hn::Set(D(), slot.rate.beta + slot.rate.alpha * slot.l2)) {}

  static HWY_INLINE V Root(V n) { return hn::Sqrt(hn::Max(n, hn::Zero(D()))); }
  HWY_INLINE V Weight(V value, V root) const {
    if (!ftrl) return value;
    const V weight = hn::Div(hn::Mul(value, alpha), hn::Add(beta_l2, root));
    return hn::IfThenZeroElse(hn::Eq(value, hn::Zero(D())), hn::Neg(weight));
  }
  HWY_INLINE V Value(V weight, V n) const {
    if (!ftrl) return weight;
    return hn::Mul(hn::Neg(weight), hn::Mul(hn::Add(beta_l2, Root(n)), inverse_alpha));
  }
  HWY_INLINE V RateOf(V n) const {
    return hn::Div(alpha, hn::Add(beta, hn::Sqrt(hn::Max(n, hn::Set(D(), 1e-30f)))));
  }

  const bool ftrl;
  const V alpha, inverse_alpha, beta, beta_l2;
};

// A merge's floats of some slots.
template <typename D>
struct Merged {
  using V = hn::Vec<D>;
  V local_value, local_squares, shift_value, shift_squares;
};

// What a merge begins with: this worker's state (value, squares `to`), the state that its round
// began with (weight `began`, squares `from`) and the servers' (weight `theirs`, squares `now`).
template <typename D>
struct Unmerged {
  using V = hn::Vec<D>;
  V value, to, began, from, theirs, now;
};

// Slots outside of `steps` have not moved.
template <typename D, typename V = hn::Vec<D>>
HWY_INLINE Merged<D> MergeLanes(const Lanes<D>& rule, hn::Mask<D> steps, const Unmerged<D>& slots) {
  const D d;
  const auto [value, to, began, from, theirs, now] = slots;
  const V half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f);
  const V grown = hn::Sub(hn::Max(to, hn::Zero(d)), hn::Max(from, hn::Zero(d)));
  const V root_to = rule.Root(to);
  const V here = hn::MulAdd(half, hn::Add(rule.Root(from), root_to), rule.beta);
  const V there = hn::MulAdd(
      half, hn::Add(rule.Root(now), rule.Root(hn::Sub(hn::Add(now, to), from))), rule.beta);
  const hn::Mask<D> shorter = hn::And(hn::Gt(to, from), hn::Lt(here, there));
  const V ratio = hn::IfThenElse(shorter, hn::Div(here, there), one);
  const V moved = hn::IfThenElseZero(steps, hn::Sub(rule.Weight(value, root_to), began));
  return {hn::MulAdd(ratio, moved, began), grown, hn::Sub(theirs, began),
          rule.RateOf(hn::Add(now, grown))};
}

void MergePairs(const SlotBlock& block, const float* theirs, bool all, MergeState* met) {
  const DPairs d;
  const hn::Rebind<int32_t, DPairs> di;
  const hn::Rebind<uint8_t, DPairs> db;
  using V = hn::Vec<DPairs>;
  const Lanes<DPairs> rule(*block.slot);
  const auto known_counts =
      all ? hn::Eq(hn::Zero(d), hn::Zero(d)) : hn::Lt(hn::Zero(d), hn::Zero(d));
  size_t i = 0;
  for (; i + hn::Lanes(d) <= block.count; i += hn::Lanes(d)) {
    float* const local = block.local + 2 * i;
    float* const base = block.base + 2 * i;
    float* const shift = block.shift + 2 * i;
    V value, to, began, from, their, now, old_shift, old_rate;
    hn::LoadInterleaved2(d, local, value, to);
    hn::LoadInterleaved2(d, base, began, from);
    hn::LoadInterleaved2(d, theirs + 2 * i, their, now);
    const auto steps = hn::Ne(to, from);
    const auto known =
        hn::And(known_counts, hn::Or(hn::Ne(now, hn::Zero(d)), hn::Ne(to, hn::Zero(d))));
    const auto in = hn::Or(hn::Or(steps, hn::Ne(now, from)), known);
    const auto kinds = hn::IfThenElse(
        hn::RebindMask(di, steps), hn::Set(di, static_cast<int32_t>(MergeState::kChanged)),
        hn::IfThenElseZero(hn::RebindMask(di, in),
                           hn::Set(di, static_cast<int32_t>(MergeState::kTheirs))));
    hn::StoreU(hn::DemoteTo(db, kinds), db, reinterpret_cast<uint8_t*>(met + i));
    if (hn::AllFalse(d, in)) continue;
    hn::LoadInterleaved2(d, shift, old_shift, old_rate);
    const Merged<DPairs> now_is =
        MergeLanes<DPairs>(rule, steps, {value, to, began, from, their, now});
    hn::StoreInterleaved2(hn::IfThenElse(in, now_is.local_value, value),
                          hn::IfThenElse(in, now_is.local_squares, to), d, local);
    hn::StoreInterleaved2(hn::IfThenElse(in, now_is.shift_value, old_shift),
                          hn::IfThenElse(in, now_is.shift_squares, old_rate), d, shift);
    hn::StoreInterleaved2(hn::IfThenElse(in, their, began), hn::IfThenElse(in, now, from), d, base);
  }
  ScalarMergeKernels()->merge_pairs({block.slot, block.count - i, block.gap, block.local + 2 * i,
                                     block.base + 2 * i, block.shift + 2 * i},
                                    theirs + 2 * i, all, met + i);
}

// What is left of a run behind its first `done` slots.
HWY_INLINE SlotBlock Rest(const SlotBlock& block, size_t done) {
  return {block.slot,         block.count - done, block.gap,
          block.local + done, block.base + done,  block.shift + done};
}

void MergeRun(const SlotBlock& block, const float* theirs, bool steps) {
  const DRun d;
  const Lanes<DRun> rule(*block.slot);
  const auto stepped = steps ? hn::Eq(hn::Zero(d), hn::Zero(d)) : hn::Lt(hn::Zero(d), hn::Zero(d));
  size_t i = 0;
  for (; i + hn::Lanes(d) <= block.count; i += hn::Lanes(d)) {
    float* const local = block.local + i;
    float* const base = block.base + i;
    float* const shift = block.shift + i;
    const auto their = hn::LoadU(d, theirs + i), now = hn::LoadU(d, theirs + i + block.gap);
    const Merged<DRun> now_is =
        MergeLanes<DRun>(rule, stepped,
                         {hn::LoadU(d, local), hn::LoadU(d, local + block.gap), hn::LoadU(d, base),
                          hn::LoadU(d, base + block.gap), their, now});
    hn::StoreU(now_is.local_value, d, local);
    hn::StoreU(now_is.local_squares, d, local + block.gap);
    hn::StoreU(now_is.shift_value, d, shift);
    hn::StoreU(now_is.shift_squares, d, shift + block.gap);
    hn::StoreU(their, d, base);
    hn::StoreU(now, d, base + block.gap);
  }
  if (i < block.count) ScalarMergeKernels()->merge_run(Rest(block, i), theirs + i, steps);
}

void AbsorbRun(const SlotBlock& block, const float* theirs, bool steps) {
  const DRun d;
  const Lanes<DRun> rule(*block.slot);
  const auto stepped = steps ? hn::Eq(hn::Zero(d), hn::Zero(d)) : hn::Lt(hn::Zero(d), hn::Zero(d));
  size_t i = 0;
  for (; i + hn::Lanes(d) <= block.count; i += hn::Lanes(d)) {
    float* const local = block.local + i;
    float* const base = block.base + i;
    const auto their = hn::LoadU(d, theirs + i), now = hn::LoadU(d, theirs + i + block.gap);
    const auto began = hn::LoadU(d, base);
    const Merged<DRun> now_is =
        MergeLanes<DRun>(rule, stepped,
                         {hn::LoadU(d, local), hn::LoadU(d, local + block.gap), began,
                          hn::LoadU(d, base + block.gap), their, now});
    const auto n = hn::Add(now, now_is.local_squares);
    const auto weight = hn::Add(their, hn::Sub(now_is.local_value, began));
    hn::StoreU(rule.Value(weight, n), d, local);
    hn::StoreU(n, d, local + block.gap);
    hn::StoreU(their, d, base);
    hn::StoreU(now, d, base + block.gap);
  }
  if (i < block.count) ScalarMergeKernels()->absorb_run(Rest(block, i), theirs + i, steps);
}

// The slots [i, i + lanes) of `met` that are `is`.
template <typename D>
HWY_INLINE hn::Mask<D> MetIs(D d, const MergeState* met, MergeState is) {
  const hn::Rebind<int32_t, D> di;
  const hn::Rebind<uint8_t, D> db;
  const auto kinds = hn::PromoteTo(di, hn::LoadU(db, reinterpret_cast<const uint8_t*>(met)));
  return hn::RebindMask(d, hn::Eq(kinds, hn::Set(di, static_cast<int32_t>(is))));
}

void AdoptPairs(const SlotBlock& block, const MergeState* met) {
  const DPairs d;
  using V = hn::Vec<DPairs>;
  const Lanes<DPairs> rule(*block.slot);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= block.count; i += hn::Lanes(d)) {
    const auto out = MetIs(d, met + i, MergeState::kUntouched);
    if (hn::AllTrue(d, out)) continue;
    V own, grown, unused, had, shift, rate;
    hn::LoadInterleaved2(d, block.local + 2 * i, own, grown);
    hn::LoadInterleaved2(d, block.base + 2 * i, unused, had);
    hn::LoadInterleaved2(d, block.shift + 2 * i, shift, rate);
    const V n = hn::Add(had, grown);
    const V value = rule.Value(hn::Add(own, shift), n);
    hn::StoreInterleaved2(hn::IfThenElse(out, own, value), hn::IfThenElse(out, grown, n), d,
                          block.local + 2 * i);
  }
  ScalarMergeKernels()->adopt_pairs({block.slot, block.count - i, block.gap, block.local + 2 * i,
                                     block.base + 2 * i, block.shift + 2 * i},
                                    met + i);
}

void AdoptRun(const SlotBlock& block) {
  const DRun d;
  const Lanes<DRun> rule(*block.slot);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= block.count; i += hn::Lanes(d)) {
    float* const local = block.local + i;
    const auto n =
        hn::Add(hn::LoadU(d, block.base + i + block.gap), hn::LoadU(d, local + block.gap));
    const auto weight = hn::Add(hn::LoadU(d, local), hn::LoadU(d, block.shift + i));
    hn::StoreU(rule.Value(weight, n), d, local);
    hn::StoreU(n, d, local + block.gap);
  }
  if (i < block.count) ScalarMergeKernels()->adopt_run(Rest(block, i));
}

bool BeyondPairs(const SlotBlock& block, const MergeState* met, float* delta) {
  const DPairs d;
  using V = hn::Vec<DPairs>;
  const Lanes<DPairs> rule(*block.slot);
  auto any = hn::Lt(hn::Zero(d), hn::Zero(d));
  size_t i = 0;
  for (; i + hn::Lanes(d) <= block.count; i += hn::Lanes(d)) {
    V value, to, began, from;
    hn::LoadInterleaved2(d, block.local + 2 * i, value, to);
    hn::LoadInterleaved2(d, block.base + 2 * i, began, from);
    const auto in = hn::Or(hn::Ne(to, from), MetIs(d, met + i, MergeState::kChanged));
    any = hn::Or(any, in);
    const V moved = hn::Sub(rule.Weight(value, rule.Root(to)), began);
    const V grown = hn::Sub(hn::Max(to, hn::Zero(d)), hn::Max(from, hn::Zero(d)));
    hn::StoreInterleaved2(hn::IfThenElseZero(in, moved), hn::IfThenElseZero(in, grown), d,
                          delta + 2 * i);
  }
  const bool rest = ScalarMergeKernels()->beyond_pairs(
      {block.slot, block.count - i, block.gap, block.local + 2 * i, block.base + 2 * i,
       block.shift + 2 * i},
      met + i, delta + 2 * i);
  return rest || !hn::AllFalse(d, any);
}

void BeyondRun(const SlotBlock& block, float* delta) {
  const DRun d;
  const Lanes<DRun> rule(*block.slot);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= block.count; i += hn::Lanes(d)) {
    const auto to = hn::LoadU(d, block.local + i + block.gap);
    const auto weight = rule.Weight(hn::LoadU(d, block.local + i), rule.Root(to));
    hn::StoreU(hn::Sub(weight, hn::LoadU(d, block.base + i)), d, delta + i);
    const auto from = hn::Max(hn::LoadU(d, block.base + i + block.gap), hn::Zero(d));
    hn::StoreU(hn::Sub(hn::Max(to, hn::Zero(d)), from), d, delta + i + block.gap);
  }
  if (i < block.count) ScalarMergeKernels()->beyond_run(Rest(block, i), delta + i);
}

void GatherRun(const SlotBlock& block, bool met, const ReplayFloats& to) {
  const DRun d;
  const Lanes<DRun> rule(*block.slot);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= block.count; i += hn::Lanes(d)) {
    const auto own = hn::LoadU(d, block.local + i);
    if (met) {
      const auto shift = hn::LoadU(d, block.shift + i);
      hn::StoreU(shift, d, to.shifts + i);
      hn::StoreU(hn::Add(own, shift), d, to.weights + i);
      hn::StoreU(hn::LoadU(d, block.shift + i + block.gap), d, to.rates + i);
    } else {
      const auto n = hn::LoadU(d, block.local + i + block.gap);
      hn::StoreU(hn::Zero(d), d, to.shifts + i);
      hn::StoreU(rule.Weight(own, rule.Root(n)), d, to.weights + i);
      hn::StoreU(rule.RateOf(n), d, to.rates + i);
    }
  }
  if (i < block.count)
    ScalarMergeKernels()->gather_run(Rest(block, i), met,
                                     {to.weights + i, to.shifts + i, to.rates + i});
}

float SummedSteps(const float* rates, const float* gradients, size_t count) {
  const DPairs d;
  auto sums = hn::Zero(d);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto g = hn::LoadU(d, gradients + i);
    sums = hn::MulAdd(hn::Mul(hn::LoadU(d, rates + i), g), g, sums);
  }
  return hn::GetLane(hn::SumOfLanes(d, sums)) +
         ScalarMergeKernels()->summed_steps(rates + i, gradients + i, count - i);
}

void TakeBack(float back, const float* rates, const float* gradients, size_t count, float* shift) {
  const DRun d;
  const auto times = hn::Set(d, back);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto step = hn::Mul(hn::Mul(times, hn::LoadU(d, rates + i)), hn::LoadU(d, gradients + i));
    hn::StoreU(hn::Sub(hn::LoadU(d, shift + i), step), d, shift + i);
  }
  ScalarMergeKernels()->take_back(back, rates + i, gradients + i, count - i, shift + i);
}

const MergeKernels* Table() {
  static constexpr MergeKernels table = {NameOfTarget(HWY_TARGET),
                                         MergePairs,
                                         MergeRun,
                                         AbsorbRun,
                                         AdoptPairs,
                                         AdoptRun,
                                         BeyondPairs,
                                         BeyondRun,
                                         GatherRun,
                                         SummedSteps,
                                         TakeBack};
  return &table;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::sparse
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET

#if HWY_ONCE
namespace shoal::learn::sparse {
namespace {

std::vector<const MergeKernels*> AvailableTables() {
  std::vector<const MergeKernels*> tables;
  SHOAL_ADD_AVX3(tables);
  SHOAL_ADD_AVX2(tables);
  SHOAL_ADD_SSE4(tables);
  tables.push_back(ScalarMergeKernels());
  return tables;
}

}  // namespace

std::vector<std::string_view> AvailableMergeKernels() { return KernelNames(AvailableTables()); }

Result<const MergeKernels*> ChooseMergeKernels(std::string_view name) {
  return ChooseKernelsByName(AvailableTables(), name);
}

}  // namespace shoal::learn::sparse
#endif  // HWY_ONCE
