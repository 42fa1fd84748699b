#include "learn/sparse/exchange/replay.h"

#include <algorithm>
#include <cmath>

namespace shoal::learn::sparse {
namespace {

// Of a margin at a time: a product of two factors that both move is no longer linear beyond.
constexpr float kFarthest = 1;

// Of one feature: the weight of a slot as it will be pushed, and how far one gradient moves it.
struct Weight {
  float now = 0;
  float shift = 0;
  float rate = 0;
};

inline Weight WeightAt(const Merge& merge, bool met, const Slot& slot, uint64_t at) {
  const float own = merge.own[at + slot.value];
  if (met) {
    const float shift = merge.shift[at + slot.value];
    return {own + shift, shift, merge.shift[at + slot.squares]};
  }
  const float n = merge.own[at + slot.squares];
  return {WeightOf(slot, own, n), 0, RateOf(slot.rate, n)};
}

// Of the log-loss between two margins: by how much the probabilities differ, in place of p·(1 − p)
// at one of them, which is nothing where a margin has gone far.
float MeanCurvature(float from, float to) {
  const float p = Probability(from), q = Probability(to);
  return std::abs(to - from) < 1e-3f ? p * (1 - p) : (q - p) / (to - from);
}

}  // namespace

void Replay(const Learner& learner, const Merge& merge, const Row& row, float weight,
            std::vector<float>* scratch) {
  const std::vector<Slot>& slots = learner.slots();
  const size_t all = row.count * slots.size();
  if (scratch->size() < 4 * all) scratch->resize(4 * all);
  float* const weights = scratch->data();
  float* const gradients = weights + all;
  float* const shifts = gradients + all;
  float* const rates = shifts + all;
  size_t at = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    const bool met = merge.met[row.features[i]] != MergeState::kUntouched;
    for (const Slot& slot : slots) {
      const Weight one = WeightAt(merge, met, slot, row.features[i] * merge.width);
      weights[at] = one.now;
      shifts[at] = one.shift;
      rates[at++] = one.rate;
    }
  }
  float shifted = 0;
  float margin = learner.Gradients(weights, shifts, row, gradients, &shifted);
  float taken = 0;
  for (at = 0; at < all; ++at) taken += rates[at] * gradients[at] * gradients[at];
  Weight bias;
  if (merge.bias != UINT64_MAX) {
    bias = WeightAt(merge, merge.met[merge.bias] != MergeState::kUntouched, slots[0],
                    merge.bias * merge.width);
    margin += bias.now;
    shifted += bias.shift;
    taken += bias.rate;
  }
  if (taken <= 0 || shifted == 0) return;
  const float curvature = MeanCurvature(margin - shifted, margin);
  const float margins = shifted * -std::expm1(-weight * curvature * taken);
  const float back = std::clamp(margins, -kFarthest, kFarthest) / taken;
  at = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    MergeState& met = merge.met[row.features[i]];
    if (met == MergeState::kUntouched) {
      at += slots.size();
      continue;
    }
    met = MergeState::kChanged;
    float* const shift = merge.shift + row.features[i] * merge.width;
    for (const Slot& slot : slots) {
      shift[slot.value] -= back * rates[at] * gradients[at];
      ++at;
    }
  }
  if (merge.bias == UINT64_MAX || merge.met[merge.bias] == MergeState::kUntouched) return;
  merge.met[merge.bias] = MergeState::kChanged;
  merge.shift[merge.bias * merge.width + slots[0].value] -= back * bias.rate;
}

}  // namespace shoal::learn::sparse
