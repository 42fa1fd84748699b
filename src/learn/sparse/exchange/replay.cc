#include "learn/sparse/exchange/replay.h"

#include <algorithm>
#include <cmath>

#include "learn/sparse/exchange/merge_kernels.h"
#include "learn/sparse/exchange/merge_kernels_scalar.h"

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

// What a row has of the merge, in the caller's scratch.
struct Gathered {
  float* weights = nullptr;    // [row.count · slots]
  float* gradients = nullptr;  // of the margin, likewise
  float* shifts = nullptr;
  float* rates = nullptr;
  float bias_rate = 0;
  float margin = 0;   // with the shift
  float shifted = 0;  // by the shift
  float taken = 0;    // Σ rate·gradient²
};

Gathered Gather(const Learner& learner, const Merge& merge, const Row& row,
                std::vector<float>* scratch) {
  const std::vector<Slot>& slots = learner.slots();
  const size_t all = row.count * slots.size();
  if (scratch->size() < 4 * all + kPad) scratch->resize(4 * all + kPad);
  Gathered got;
  got.weights = scratch->data();
  got.gradients = got.weights + all;
  got.shifts = got.gradients + all;
  got.rates = got.shifts + all;
  for (uint32_t i = 0; i < std::min(kAhead, row.count); ++i) Prefetch(merge, row, i);
  for (uint32_t i = 0; i < row.count; ++i) {
    Prefetch(merge, row, i + kAhead);
    const size_t at = i * slots.size();
    GatherFeature(merge, slots, row.features[i],
                  {got.weights + at, got.shifts + at, got.rates + at});
  }
  got.margin = learner.Gradients(got.weights, got.shifts, row, got.gradients, &got.shifted);
  got.taken = merge.kernels->summed_steps(got.rates, got.gradients, all);
  if (merge.bias == UINT64_MAX) return got;
  float bias_weight = 0, bias_shift = 0;
  const uint64_t first = merge.bias * merge.width + slots[0].value;
  GatherSlot({&slots[0], 1, size_t{slots[0].squares} - slots[0].value,
              const_cast<float*>(merge.own) + first, nullptr, merge.shift + first},
             merge.met[merge.bias] != MergeState::kUntouched,
             {&bias_weight, &bias_shift, &got.bias_rate});
  got.margin += bias_weight;
  got.shifted += bias_shift;
  got.taken += got.bias_rate;
  return got;
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

float ReplayMargin(const Learner& learner, const Merge& merge, const Row& row,
                   std::vector<float>* scratch) {
  return Gather(learner, merge, row, scratch).margin;
}

void Replay(const Learner& learner, const Merge& merge, const Replayed& example,
            std::vector<float>* scratch) {
  const Row& row = example.row;
  const std::vector<Slot>& slots = learner.slots();
  const Gathered got = Gather(learner, merge, row, scratch);
  if (got.taken <= 0 || got.shifted == 0) return;
  const float to = got.margin - example.others;
  const float curvature = MeanCurvature(learner.loss(), to - got.shifted, to, example.label);
  const float margins =
      got.shifted * -std::expm1(-example.weight * row.weight * curvature * got.taken);
  const float back = std::clamp(margins, -kFarthest, kFarthest) / got.taken;
  for (uint32_t i = 0; i < row.count; ++i) {
    MergeState& met = merge.met[row.features[i]];
    if (met == MergeState::kUntouched) continue;
    met = MergeState::kChanged;
    for (const SlotRun& run : merge.runs) {
      const size_t at = i * slots.size() + run.first;
      float* const shift = merge.shift + row.features[i] * merge.width + slots[run.first].value;
      if (run.count == 1) {
        *shift -= back * got.rates[at] * got.gradients[at];
      } else {
        merge.kernels->take_back(back, got.rates + at, got.gradients + at, run.count, shift);
      }
    }
  }
  if (merge.bias == UINT64_MAX || merge.met[merge.bias] == MergeState::kUntouched) return;
  merge.met[merge.bias] = MergeState::kChanged;
  merge.shift[merge.bias * merge.width + slots[0].value] -= back * got.bias_rate;
}

}  // namespace shoal::learn::sparse
