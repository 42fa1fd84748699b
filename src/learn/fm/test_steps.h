// What the tests of the pairs' kernels, with and without fields, check alike.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "learn/fm/kernels.h"

namespace shoal::learn::fm {

// Two tables of functions, each with a state of its own, over the same examples.
class SideBySide {
 public:
  SideBySide(const Rule& rule, const Kernels* kernels, const Kernels* reference, size_t features)
      : rule_(rule),
        kernels_(kernels),
        reference_(reference),
        a_(rule.width() * features),
        b_(a_.size()) {}

  // The reference's state.
  const std::vector<float>& state() const { return b_; }

  // The pairs of both, then a step of both by an error of -1, 0 or 1. Returns the reference's.
  float Turn(const Row& row, int turn, const std::string& what) {
    const float got = kernels_->pairs(rule_, a_.data(), row, &scratch_a_);
    const float expected = reference_->pairs(rule_, b_.data(), row, &scratch_b_);
    EXPECT_NEAR(got, expected, 2e-3 * (1 + std::abs(expected))) << what << " turn " << turn;
    const float error = static_cast<float>(turn % 3) - 1;
    kernels_->step(rule_, a_.data(), row, error, &scratch_a_);
    reference_->step(rule_, b_.data(), row, error, &scratch_b_);
    return expected;
  }

  void ExpectEqualStates(const std::string& what) const {
    for (size_t i = 0; i < a_.size(); ++i)
      ASSERT_NEAR(a_[i], b_[i], 5e-3 * (1 + std::abs(b_[i]))) << what << " state " << i;
  }

 private:
  const Rule& rule_;
  const Kernels* const kernels_;
  const Kernels* const reference_;
  std::vector<float> a_, b_;
  Scratch scratch_a_, scratch_b_;
};

// The gradient that the first step took at D number `at`, which lies in `stepped`, is that of
// `loss`, a function of *state, by finite differences; *state has a 0 there.
template <typename Loss>
void ExpectGradient(const Rule& rule, const std::vector<float>& stepped, size_t at, Loss loss,
                    std::vector<float>* state, double tolerance) {
  constexpr float kBit = 0x1p-6f;
  (*state)[at] = kBit;
  const double above = loss();
  (*state)[at] = -kBit;
  const double below = loss();
  (*state)[at] = 0;
  const double gradient = (above - below) / (2 * static_cast<double>(kBit));
  // AdaGrad's sum began at 0, so it is g² now, and D moved against g.
  const double root = std::sqrt(static_cast<double>(stepped[at + rule.stored]));
  EXPECT_NEAR(std::copysign(root, -stepped[at]), gradient, tolerance + 0.02 * std::abs(gradient));
}

}  // namespace shoal::learn::fm
