#include "learn/sparse/exchange/merge_kernels_scalar.h"

#include "learn/sparse/exchange/merge_kernels.h"

namespace shoal::learn::sparse {
namespace {

void MergePairs(const SlotBlock& block, const float* theirs, bool all, MergeState* met) {
  for (size_t i = 0; i < block.count; ++i) {
    const float own = block.local[2 * i + 1], from = block.base[2 * i + 1];
    const float now = theirs[2 * i + 1];
    const bool steps = own != from;
    met[i] = MergeState::kUntouched;
    if (!steps && now == from && !(all && (now != 0 || own != 0))) continue;
    met[i] = steps ? MergeState::kChanged : MergeState::kTheirs;
    MergeSlot({block.slot, 1, 1, block.local + 2 * i, block.base + 2 * i, block.shift + 2 * i},
              theirs + 2 * i, steps);
  }
}

void MergeRun(const SlotBlock& block, const float* theirs, bool steps) {
  for (size_t i = 0; i < block.count; ++i)
    MergeSlot({block.slot, 1, block.gap, block.local + i, block.base + i, block.shift + i},
              theirs + i, steps);
}

void AbsorbRun(const SlotBlock& block, const float* theirs, bool steps) {
  for (size_t i = 0; i < block.count; ++i)
    AbsorbSlot({block.slot, 1, block.gap, block.local + i, block.base + i, block.shift}, theirs + i,
               steps);
}

void AdoptPairs(const SlotBlock& block, const MergeState* met) {
  for (size_t i = 0; i < block.count; ++i) {
    if (met[i] == MergeState::kUntouched) continue;
    AdoptSlot(*block.slot, 1, block.local + 2 * i, block.base + 2 * i, block.shift + 2 * i);
  }
}

void AdoptRun(const SlotBlock& block) {
  for (size_t i = 0; i < block.count; ++i)
    AdoptSlot(*block.slot, block.gap, block.local + i, block.base + i, block.shift + i);
}

bool BeyondPairs(const SlotBlock& block, const MergeState* met, float* delta) {
  bool any = false;
  for (size_t i = 0; i < block.count; ++i) {
    delta[2 * i] = delta[2 * i + 1] = 0;
    if (block.local[2 * i + 1] == block.base[2 * i + 1] && met[i] != MergeState::kChanged) continue;
    any = true;
    BeyondSlot(*block.slot, 1, block.local + 2 * i, block.base + 2 * i, delta + 2 * i);
  }
  return any;
}

void BeyondRun(const SlotBlock& block, float* delta) {
  for (size_t i = 0; i < block.count; ++i)
    BeyondSlot(*block.slot, block.gap, block.local + i, block.base + i, delta + i);
}

void GatherRun(const SlotBlock& block, bool met, const ReplayFloats& to) {
  for (size_t i = 0; i < block.count; ++i)
    GatherSlot({block.slot, 1, block.gap, block.local + i, block.base, block.shift + i}, met,
               {to.weights + i, to.shifts + i, to.rates + i});
}

float SummedSteps(const float* rates, const float* gradients, size_t count) {
  float sum = 0;
  for (size_t i = 0; i < count; ++i) sum += rates[i] * gradients[i] * gradients[i];
  return sum;
}

void TakeBack(float back, const float* rates, const float* gradients, size_t count, float* shift) {
  for (size_t i = 0; i < count; ++i) shift[i] -= back * rates[i] * gradients[i];
}

constexpr MergeKernels kTable = {"scalar",   MergePairs,  MergeRun,    AbsorbRun,
                                 AdoptPairs, AdoptRun,    BeyondPairs, BeyondRun,
                                 GatherRun,  SummedSteps, TakeBack};

}  // namespace

const MergeKernels* ScalarMergeKernels() { return &kTable; }

}  // namespace shoal::learn::sparse
