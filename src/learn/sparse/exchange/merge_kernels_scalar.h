// The merge of one slot: the reference of merge_kernels.h, and what is left over by vectors.
#pragma once

#include <algorithm>

#include "learn/sparse/exchange/merge_kernels.h"
#include "learn/sparse/exchange/replay.h"
#include "learn/sparse/learner.h"

namespace shoal::learn::sparse {

// The first slot of `at`, in place; the servers' are at `theirs`. Pointers are to the value; its
// squares are at.gap floats behind it.
inline void MergeSlot(const SlotBlock& at, const float* theirs, bool steps) {
  const auto& [slot_of, count, gap, local, base, shift] = at;
  const Slot& slot = *slot_of;
  const float from = base[gap], to = local[gap], now = theirs[gap], began = *base;
  const float grown = std::max(to, 0.0f) - std::max(from, 0.0f);
  const float moved = steps ? WeightOf(slot, *local, to) - began : 0;
  *local = began + StepRatio(slot.rate, from, to, now) * moved;
  local[gap] = grown;
  *shift = *theirs - began;
  shift[gap] = RateOf(slot.rate, now + grown);
  *base = *theirs;
  base[gap] = now;
}

// Merge and adoption at once, without a replay between them.
inline void AbsorbSlot(const SlotBlock& at, const float* theirs, bool steps) {
  const auto& [slot_of, count, gap, local, base, shift] = at;
  const Slot& slot = *slot_of;
  const float from = base[gap], to = local[gap], now = theirs[gap];
  const float n = now + (std::max(to, 0.0f) - std::max(from, 0.0f));
  const float moved = steps ? WeightOf(slot, *local, to) - *base : 0;
  *local = ValueOf(slot, *theirs + StepRatio(slot.rate, from, to, now) * moved, n);
  local[gap] = n;
  *base = *theirs;
  base[gap] = now;
}

inline void AdoptSlot(const Slot& slot, size_t gap, float* local, const float* base,
                      const float* shift) {
  const float n = base[gap] + local[gap];
  *local = ValueOf(slot, *local + *shift, n);
  local[gap] = n;
}

inline void BeyondSlot(const Slot& slot, size_t gap, const float* local, const float* base,
                       float* delta) {
  *delta = WeightOf(slot, *local, local[gap]) - *base;
  delta[gap] = std::max(local[gap], 0.0f) - std::max(base[gap], 0.0f);
}

// block.local is Merge::own.
inline void GatherSlot(const SlotBlock& block, bool met, const ReplayFloats& to) {
  const float own = *block.local;
  *to.shifts = met ? *block.shift : 0;
  if (met) {
    *to.weights = own + *block.shift;
    *to.rates = block.shift[block.gap];
    return;
  }
  const float n = block.local[block.gap];
  *to.weights = WeightOf(*block.slot, own, n);
  *to.rates = RateOf(block.slot->rate, n);
}

}  // namespace shoal::learn::sparse
