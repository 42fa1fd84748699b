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

Weight WeightAt(const Merge& merge, const Slot& slot, uint64_t feature) {
  const uint64_t at = feature * merge.width;
  const auto rate = [&slot](float n) {
    return slot.rate.alpha / (slot.rate.beta + std::sqrt(std::max(n, 1e-30f)));
  };
  if (merge.met[feature] == MergeState::kUntouched) {
    const float n = merge.own[at + slot.squares];
    return {WeightOf(slot, merge.own[at + slot.value], n), 0, rate(n)};
  }
  const float shift = merge.shift[at + slot.value];
  const float n = merge.theirs[at + slot.squares] + merge.own[at + slot.squares];
  return {merge.own[at + slot.value] + shift, shift, rate(n)};
}

// Of the log-loss between two margins: by how much the probabilities differ, in place of p·(1 − p)
// at one of them, which is nothing where a margin has gone far.
float MeanCurvature(float from, float to) {
  const float p = Probability(from), q = Probability(to);
  return std::abs(to - from) < 1e-3f ? p * (1 - p) : (q - p) / (to - from);
}

}  // namespace

float StepRatio(const Rate& rate, float from, float to, float theirs) {
  if (to <= from) return 1;
  const auto roots = [](float a, float b) {
    return (std::sqrt(std::max(a, 0.0f)) + std::sqrt(std::max(b, 0.0f))) / 2;
  };
  const float there = rate.beta + roots(theirs, theirs + to - from);
  return there > 0 ? std::min(1.0f, (rate.beta + roots(from, to)) / there) : 1.0f;
}

void Replay(const Learner& learner, const Merge& merge, const Row& row, float weight,
            std::vector<float>* scratch) {
  const std::vector<Slot>& slots = learner.slots();
  const size_t all = row.count * slots.size();
  scratch->resize(4 * all);
  float* const weights = scratch->data();
  float* const gradients = weights + all;
  float* const shifts = gradients + all;
  float* const rates = shifts + all;
  for (uint32_t i = 0; i < row.count; ++i) {
    for (size_t s = 0; s < slots.size(); ++s) {
      const Weight one = WeightAt(merge, slots[s], row.features[i]);
      const size_t at = i * slots.size() + s;
      weights[at] = one.now - one.shift;
      shifts[at] = one.shift;
      rates[at] = one.rate;
    }
  }
  const float without = learner.Gradients(weights, row, gradients);
  for (size_t at = 0; at < all; ++at) weights[at] += shifts[at];
  float margin = learner.Gradients(weights, row, gradients);
  float shifted = margin - without, taken = 0;
  for (size_t at = 0; at < all; ++at) taken += rates[at] * gradients[at] * gradients[at];
  Weight bias;
  if (merge.bias != UINT64_MAX) {
    bias = WeightAt(merge, slots[0], merge.bias);
    margin += bias.now;
    shifted += bias.shift;
    taken += bias.rate;
  }
  if (taken <= 0 || shifted == 0) return;
  const float curvature = MeanCurvature(margin - shifted, margin);
  const float margins = shifted * -std::expm1(-weight * curvature * taken);
  const float back = std::clamp(margins, -kFarthest, kFarthest) / taken;
  for (uint32_t i = 0; i < row.count; ++i) {
    if (merge.met[row.features[i]] == MergeState::kUntouched) continue;
    merge.met[row.features[i]] = MergeState::kChanged;
    float* const shift = merge.shift + row.features[i] * merge.width;
    for (size_t s = 0; s < slots.size(); ++s) {
      const size_t at = i * slots.size() + s;
      shift[slots[s].value] -= back * rates[at] * gradients[at];
    }
  }
  if (merge.bias == UINT64_MAX || merge.met[merge.bias] == MergeState::kUntouched) return;
  merge.met[merge.bias] = MergeState::kChanged;
  merge.shift[merge.bias * merge.width + slots[0].value] -= back * bias.rate;
}

}  // namespace shoal::learn::sparse
