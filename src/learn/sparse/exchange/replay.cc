#include "learn/sparse/exchange/replay.h"

#include <algorithm>
#include <cmath>

#include "learn/sparse/merge_kernels.h"
#include "learn/sparse/merge_kernels_scalar.h"

namespace shoal::learn::sparse {
namespace {

// Of a margin at a time: a product of two factors that both move is no longer linear beyond.
constexpr float kFarthest = 1;

constexpr size_t kPad = 16;     // floats that vectors may read beyond the last
constexpr uint32_t kAhead = 6;  // features whose floats are prefetched

// The features of a row lie anywhere in large arrays.
inline void Prefetch(const Merge& merge, const Row& row, uint32_t i) {
  if (i >= row.count) return;
  const uint64_t at = row.features[i] * merge.width;
  __builtin_prefetch(&merge.met[row.features[i]]);
  for (uint64_t f = 0; f < merge.width; f += 16) {
    __builtin_prefetch(merge.own + at + f);
    __builtin_prefetch(merge.shift + at + f);
  }
}

inline void GatherFeature(const Merge& merge, const std::vector<Slot>& slots, uint64_t feature,
                          const ReplayFloats& to) {
  const bool met = merge.met[feature] != MergeState::kUntouched;
  for (const SlotRun& run : merge.runs) {
    const Slot& slot = slots[run.first];
    const uint64_t at = feature * merge.width + slot.value;
    const SlotBlock block = {&slot,
                             run.count,
                             size_t{slot.squares} - slot.value,
                             const_cast<float*>(merge.own) + at,
                             nullptr,
                             merge.shift + at};
    const ReplayFloats part = {to.weights + run.first, to.shifts + run.first, to.rates + run.first};
    if (run.count == 1) {
      GatherSlot(block, met, part);
    } else {
      merge.kernels->gather_run(block, met, part);
    }
  }
}

}  // namespace

std::vector<SlotRun> RunsOf(const std::vector<Slot>& slots) {
  const auto continues = [](const Slot& a, const Slot& b) {
    return b.value == a.value + 1 && b.squares == a.squares + 1 && b.rate.alpha == a.rate.alpha &&
           b.rate.beta == a.rate.beta && b.l2 == a.l2 && b.ftrl == a.ftrl;
  };
  std::vector<SlotRun> runs;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (s > 0 && continues(slots[s - 1], slots[s])) {
      ++runs.back().count;
    } else {
      runs.push_back({s, 1});
    }
  }
  return runs;
}

void Replay(const Learner& learner, const Merge& merge, const Row& row, float label, float weight,
            std::vector<float>* scratch) {
  const std::vector<Slot>& slots = learner.slots();
  const size_t all = row.count * slots.size();
  if (scratch->size() < 4 * all + kPad) scratch->resize(4 * all + kPad);
  float* const weights = scratch->data();
  float* const gradients = weights + all;
  float* const shifts = gradients + all;
  float* const rates = shifts + all;
  for (uint32_t i = 0; i < std::min(kAhead, row.count); ++i) Prefetch(merge, row, i);
  for (uint32_t i = 0; i < row.count; ++i) {
    Prefetch(merge, row, i + kAhead);
    const size_t at = i * slots.size();
    GatherFeature(merge, slots, row.features[i], {weights + at, shifts + at, rates + at});
  }
  float shifted = 0;
  float margin = learner.Gradients(weights, shifts, row, gradients, &shifted);
  float taken = merge.kernels->summed_steps(rates, gradients, all);
  float bias_weight = 0, bias_shift = 0, bias_rate = 0;
  if (merge.bias != UINT64_MAX) {
    const uint64_t first = merge.bias * merge.width + slots[0].value;
    GatherSlot({&slots[0], 1, size_t{slots[0].squares} - slots[0].value,
                const_cast<float*>(merge.own) + first, nullptr, merge.shift + first},
               merge.met[merge.bias] != MergeState::kUntouched,
               {&bias_weight, &bias_shift, &bias_rate});
    margin += bias_weight;
    shifted += bias_shift;
    taken += bias_rate;
  }
  if (taken <= 0 || shifted == 0) return;
  const float curvature = MeanCurvature(learner.loss(), margin - shifted, margin, label);
  const float margins = shifted * -std::expm1(-weight * row.weight * curvature * taken);
  const float back = std::clamp(margins, -kFarthest, kFarthest) / taken;
  for (uint32_t i = 0; i < row.count; ++i) {
    MergeState& met = merge.met[row.features[i]];
    if (met == MergeState::kUntouched) continue;
    met = MergeState::kChanged;
    for (const SlotRun& run : merge.runs) {
      const size_t at = i * slots.size() + run.first;
      float* const shift = merge.shift + row.features[i] * merge.width + slots[run.first].value;
      if (run.count == 1) {
        *shift -= back * rates[at] * gradients[at];
      } else {
        merge.kernels->take_back(back, rates + at, gradients + at, run.count, shift);
      }
    }
  }
  if (merge.bias == UINT64_MAX || merge.met[merge.bias] == MergeState::kUntouched) return;
  merge.met[merge.bias] = MergeState::kChanged;
  merge.shift[merge.bias * merge.width + slots[0].value] -= back * bias_rate;
}

}  // namespace shoal::learn::sparse
