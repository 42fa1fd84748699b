// The arithmetic of an exchange on the floats of slots (learner.h): what was trained and what the
// servers have to what replay.h needs, and back. Several slots at a time, in one of two layouts:
// beside its squares, slot after slot (`pairs`, where a feature has one slot), or values and
// squares in two runs (`run`, the factors of one feature).
//
// One source compiled for several instruction sets (Highway), chosen at run time. Used by
// state_table.h; which buffers these are is said there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "learn/sparse/exchange/replay.h"
#include "learn/sparse/learner.h"

namespace shoal::learn::sparse {

// The first value of so many slots that have one rule, in each of the buffers.
struct SlotBlock {
  const Slot* slot = nullptr;
  size_t count = 0;
  size_t gap = 0;  // of a run: floats from a value to its squares
  float* local = nullptr;
  float* base = nullptr;
  float* shift = nullptr;
};

// Where a replay keeps a row's weights.
struct ReplayFloats {
  float* weights = nullptr;
  float* shifts = nullptr;
  float* rates = nullptr;
};

// Functions for one instruction set. Constant, lives for ever; thread-safe.
struct MergeKernels {
  const char* name = "";

  // Begins a merge with what the servers have, and says in met[i] what slot i is; slots that no
  // worker changed stay as they are, unless `all` and some worker knows them.
  void (*merge_pairs)(const SlotBlock& block, const float* theirs, bool all,
                      MergeState* met) = nullptr;
  // Likewise of a feature that is in the merge; `steps`: this worker has trained it.
  void (*merge_run)(const SlotBlock& block, const float* theirs, bool steps) = nullptr;
  // Merge and adoption at once, of a feature that no replay reads: `shift` stays.
  void (*absorb_run)(const SlotBlock& block, const float* theirs, bool steps) = nullptr;
  // What came of it becomes the state that is trained.
  void (*adopt_pairs)(const SlotBlock& block, const MergeState* met) = nullptr;
  void (*adopt_run)(const SlotBlock& block) = nullptr;
  // delta: how far `local` is beyond `base`, 0 where it was neither trained nor replayed. Whether
  // any slot was.
  bool (*beyond_pairs)(const SlotBlock& block, const MergeState* met, float* delta) = nullptr;
  void (*beyond_run)(const SlotBlock& block, float* delta) = nullptr;
  // For a replay, of a run's `count` slots: weights as they will be pushed, what others changed of
  // them, and how far one gradient moves them. `met`: the feature is in the merge.
  void (*gather_run)(const SlotBlock& block, bool met, const ReplayFloats& to) = nullptr;
  // Σ rates·gradients².
  float (*summed_steps)(const float* rates, const float* gradients, size_t count) = nullptr;
  // shift −= back·rates·gradients.
  void (*take_back)(float back, const float* rates, const float* gradients, size_t count,
                    float* shift) = nullptr;
};

std::vector<std::string_view> AvailableMergeKernels();

// As the choices of the algorithms.
Result<const MergeKernels*> ChooseMergeKernels(std::string_view name);

const MergeKernels* ScalarMergeKernels();

}  // namespace shoal::learn::sparse
