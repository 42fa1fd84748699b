#include "learn/sparse/exchange/merge_kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace shoal::learn::sparse {
namespace {

constexpr size_t kSlots = 37;  // whole vectors and some more

// The buffers of a merge, of a state in which some slots were trained, some changed by others.
struct Buffers {
  explicit Buffers(const Slot& slot) : slot_(slot) {
    std::mt19937_64 random(11);
    std::normal_distribution<float> normal(0, 1);
    for (size_t i = 0; i < kSlots; ++i) {
      const bool known = i % 4 != 3, trained = i % 3 == 0, others = i % 2 == 0;
      const float weight = known ? normal(random) : 0, n = known ? std::abs(normal(random)) : 0;
      base_[i] = weight;
      base_[kSlots + i] = n;
      local_[kSlots + i] = trained ? n + std::abs(normal(random)) : n;
      local_[i] = ValueOf(slot, trained ? normal(random) : weight, local_[kSlots + i]);
      theirs_[i] = others ? normal(random) : weight;
      theirs_[kSlots + i] = others ? n + std::abs(normal(random)) : n;
    }
  }

  void Interleave() {
    for (std::vector<float>* one : {&local_, &base_, &shift_, &theirs_, &delta_}) {
      std::vector<float> pairs;
      for (size_t i = 0; i < kSlots; ++i) {
        pairs.push_back((*one)[i]);
        pairs.push_back((*one)[kSlots + i]);
      }
      *one = pairs;
    }
  }
  SlotBlock block() { return {&slot_, kSlots, kSlots, local_.data(), base_.data(), shift_.data()}; }
  void MergePairs(const MergeKernels& kernels, bool all) {
    kernels.merge_pairs(block(), theirs_.data(), all, merge_states_.data());
  }
  void ExpectNear(const Buffers& other, const std::string& what) const {
    for (size_t i = 0; i < 2 * kSlots; ++i) {
      EXPECT_NEAR(local_[i], other.local_[i], 1e-4f) << what << " " << i;
      EXPECT_NEAR(base_[i], other.base_[i], 1e-6f) << what << " " << i;
      EXPECT_NEAR(shift_[i], other.shift_[i], 1e-4f) << what << " " << i;
      EXPECT_NEAR(delta_[i], other.delta_[i], 1e-4f) << what << " " << i;
    }
    EXPECT_EQ(merge_states_, other.merge_states_) << what;
  }

  const Slot slot_;
  std::vector<float> local_ = std::vector<float>(2 * kSlots);
  std::vector<float> base_ = local_, shift_ = local_, theirs_ = local_, delta_ = local_;
  std::vector<MergeState> merge_states_ = std::vector<MergeState>(kSlots, MergeState::kUntouched);
};

const std::vector<Slot>& Rules() {
  static const std::vector<Slot> rules = {
      {0, 1, {0.7f, 0.03f}, 0.1f, true}, {0, 1, {0.7f, 0}, 0, true}, {0, 1, {0.05f, 1}, 0, false}};
  return rules;
}

TEST(MergeKernels, EveryInstructionSetAgreesWithTheReferenceInPairs) {
  for (const std::string_view name : AvailableMergeKernels()) {
    for (const Slot& slot : Rules()) {
      for (const bool all : {false, true}) {
        const std::string what = fmt::format("{} {} {}", name, slot.ftrl, all);
        Buffers one(slot), two(slot);
        for (Buffers* buffers : {&one, &two}) {
          const MergeKernels& kernels =
              buffers == &one ? **ChooseMergeKernels(name) : *ScalarMergeKernels();
          buffers->Interleave();
          buffers->MergePairs(kernels, all);
          kernels.adopt_pairs(buffers->block(), buffers->merge_states_.data());
          EXPECT_TRUE(kernels.beyond_pairs(buffers->block(), buffers->merge_states_.data(),
                                           buffers->delta_.data()));
        }
        one.ExpectNear(two, what);
      }
    }
  }
}

TEST(MergeKernels, EveryInstructionSetAgreesWithTheReferenceInRuns) {
  for (const std::string_view name : AvailableMergeKernels()) {
    for (const Slot& slot : Rules()) {
      for (const bool steps : {false, true}) {
        const std::string what = fmt::format("{} {} {}", name, slot.ftrl, steps);
        Buffers one(slot), two(slot);
        for (Buffers* buffers : {&one, &two}) {
          const MergeKernels& kernels =
              buffers == &one ? **ChooseMergeKernels(name) : *ScalarMergeKernels();
          kernels.merge_run(buffers->block(), buffers->theirs_.data(), steps);
          kernels.adopt_run(buffers->block());
          kernels.beyond_run(buffers->block(), buffers->delta_.data());
        }
        one.ExpectNear(two, what);
      }
    }
  }
}

TEST(MergeKernels, AbsorbingIsMergingAndAdoptingAtOnce) {
  for (const std::string_view name : AvailableMergeKernels()) {
    const MergeKernels& kernels = **ChooseMergeKernels(name);
    for (const Slot& slot : Rules()) {
      for (const bool steps : {false, true}) {
        const std::string what = fmt::format("{} {} {}", name, slot.ftrl, steps);
        Buffers one(slot), two(slot);
        kernels.absorb_run(one.block(), one.theirs_.data(), steps);
        EXPECT_EQ(one.shift_, two.shift_) << what;
        kernels.merge_run(two.block(), two.theirs_.data(), steps);
        kernels.adopt_run(two.block());
        two.shift_ = one.shift_;
        one.ExpectNear(two, what);
      }
    }
  }
}

TEST(MergeKernels, EveryInstructionSetReplaysAsTheReference) {
  for (const std::string_view name : AvailableMergeKernels()) {
    for (const Slot& slot : Rules()) {
      for (const bool met : {false, true}) {
        const std::string what = fmt::format("{} {} {}", name, slot.ftrl, met);
        std::vector<std::vector<float>> floats;
        std::vector<float> sums;
        for (const MergeKernels* kernels : {*ChooseMergeKernels(name), ScalarMergeKernels()}) {
          Buffers buffers(slot);
          buffers.shift_ = buffers.theirs_;
          std::vector<float> row(3 * kSlots);
          float* const rates = row.data() + 2 * kSlots;
          kernels->gather_run(buffers.block(), met, {row.data(), row.data() + kSlots, rates});
          sums.push_back(kernels->summed_steps(rates, row.data(), kSlots));
          kernels->take_back(0.5f, rates, row.data(), kSlots, buffers.shift_.data());
          row.insert(row.end(), buffers.shift_.begin(), buffers.shift_.end());
          floats.push_back(row);
        }
        EXPECT_NEAR(sums[0], sums[1], 1e-4f * (1 + sums[1])) << what;
        for (size_t i = 0; i < floats[0].size(); ++i)
          EXPECT_NEAR(floats[0][i], floats[1][i], 1e-4f * (1 + std::abs(floats[1][i]))) << what;
      }
    }
  }
}

TEST(MergeKernels, WhatNobodyChangedStaysAndIsNotSent) {
  for (const std::string_view name : AvailableMergeKernels()) {
    const MergeKernels& kernels = **ChooseMergeKernels(name);
    Buffers buffers(Rules()[0]);
    buffers.Interleave();
    buffers.theirs_ = buffers.base_;
    for (size_t i = 0; i < kSlots; ++i) buffers.local_[2 * i + 1] = buffers.base_[2 * i + 1];
    const std::vector<float> before = buffers.local_;
    buffers.MergePairs(kernels, false);
    kernels.adopt_pairs(buffers.block(), buffers.merge_states_.data());
    EXPECT_EQ(buffers.local_, before) << name;
    EXPECT_FALSE(
        kernels.beyond_pairs(buffers.block(), buffers.merge_states_.data(), buffers.delta_.data()));
  }
}

}  // namespace
}  // namespace shoal::learn::sparse
