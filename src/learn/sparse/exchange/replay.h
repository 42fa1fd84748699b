// What other workers have changed while a worker trained, as it would be had the worker trained
// after them: its examples of the round would have met their change, and pushed back as they push
// back at every mistake (docs/adr/0186). So changes of workers that did not see each other are as
// good as those of one worker that trains one round after the other.
//
// Used by state_table.h's exchange, between what it pulls and what it pushes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "learn/sparse/learner.h"

namespace shoal::learn::sparse {

// What a feature is in an exchange.
enum class MergeState : uint8_t {
  kUntouched,  // its state is as it is trained
  kTheirs,     // in the form of Merge; this worker has nothing to push of it
  kChanged,    // likewise; it has
};

struct MergeKernels;  // merge_kernels.h

// Of one feature: slots whose values and squares lie side by side and which have one rule, so that
// they are merged together.
struct SlotRun {
  size_t first = 0;
  size_t count = 0;
};
std::vector<SlotRun> RunsOf(const std::vector<Slot>& slots);

// State of all features between pull and push: floats as in a state, but weights in place of what
// FTRL makes them of.
struct Merge {
  const float* own = nullptr;  // weights without what others changed
  float* shift = nullptr;      // weights: what is left of others' change; squares: RateOf them
  MergeState* met =
      nullptr;  // by feature; kUntouched: `own` is its state as it is trained, `shift` void
  uint64_t width = 0;
  uint64_t bias = 0;                      // its number among the features; none: UINT64_MAX
  const MergeKernels* kernels = nullptr;  // not owned
  std::span<const SlotRun> runs;          // RunsOf the learner's slots
};

// An example, or what it is for one of several classes (ClassRow).
struct Replayed {
  Row row;
  float label = 0;   // of a class: 1 if it is the example's
  float weight = 1;  // it stands for so many examples
  float others = 0;  // of a class: LogSumExp of the other classes' margins
};

// Its margin, with what is left of others' change.
float ReplayMargin(const Learner& learner, const Merge& merge, const Row& row,
                   std::vector<float>* scratch);

// Lets one example push back at merge.shift, for `weight` examples like it. The change of its
// margin by `shift` is d; with a = Σ rate·gradient² and h the mean curvature of its loss along d,
// training on it once takes h·a of d back, and weight times, one after the other,
// 1 − exp(−weight·h·a): never more than d itself. Of a class, h is that of softmax while the other
// classes stand where they are. Several threads may call it for one merge, without locks.
void Replay(const Learner& learner, const Merge& merge, const Replayed& example,
            std::vector<float>* scratch);

// By how much a change of a weight is too long that was made with squares from `from` to `to`,
// where there are `theirs` in place of `from`: AdaGrad's steps would have been shorter.
inline float StepRatio(const Rate& rate, float from, float to, float theirs) {
  if (to <= from) return 1;
  const auto root = [](float n) { return std::sqrt(std::max(n, 0.0f)); };
  const float there = rate.beta + (root(theirs) + root(theirs + to - from)) / 2;
  return there > 0 ? std::min(1.0f, (rate.beta + (root(from) + root(to)) / 2) / there) : 1.0f;
}

}  // namespace shoal::learn::sparse
