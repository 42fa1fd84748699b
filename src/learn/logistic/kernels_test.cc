#include "learn/logistic/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "learn/logistic/kernels_scalar.h"
#include "learn/sparse/test_examples.h"

namespace shoal::learn::logistic {
namespace {

constexpr uint32_t kFeatures = 500;

struct Example : sparse::Example {
  float label = 0;
};

Example RandomExample(std::mt19937_64& random) {
  Example example{sparse::RandomExample(random, kFeatures)};
  example.label = static_cast<float>(random() % 2);
  return example;
}

// The same examples through every instruction set give the same states, to the rounding of sums.
TEST(LogisticKernels, EveryInstructionSetAgreesWithTheReference) {
  for (const std::string_view name : AvailableKernels()) {
    const Kernels& kernels = **ChooseKernels(name);
    for (const Rule rule : {Rule{0.7f, 0.03f, 0, 0}, Rule{0.1f, 1, 0.05f, 0.5f}}) {
      for (const bool ftrl : {true, false}) {
        const auto step = ftrl ? kernels.ftrl : kernels.adagrad;
        const auto reference = ftrl ? ScalarKernels()->ftrl : ScalarKernels()->adagrad;
        std::mt19937_64 random(5);
        std::vector<float> a(2 * kFeatures), b(2 * kFeatures), bias_a(2), bias_b(2);
        Scratch scratch;
        for (int turn = 0; turn < 300; ++turn) {
          const Example example = RandomExample(random);
          float* const bias = turn % 3 == 0 ? nullptr : bias_a.data();
          const float got = step(rule, a.data(), bias, example.row(), example.label, &scratch);
          const float expected =
              reference(rule, b.data(), bias == nullptr ? nullptr : bias_b.data(), example.row(),
                        example.label, &scratch);
          ASSERT_NEAR(got, expected, 1e-3 * (1 + std::abs(expected))) << name << " turn " << turn;
        }
        for (size_t i = 0; i < a.size(); ++i)
          ASSERT_NEAR(a[i], b[i], 2e-3 * (1 + std::abs(b[i]))) << name << " state " << i;
        std::vector<float> weights(kFeatures), plain(kFeatures);
        kernels.ftrl_weights(rule, b.data(), kFeatures, weights.data());
        ScalarKernels()->ftrl_weights(rule, b.data(), kFeatures, plain.data());
        for (size_t i = 0; i < kFeatures; ++i)
          ASSERT_NEAR(weights[i], plain[i], 1e-5 * (1 + std::abs(plain[i])));
      }
    }
  }
}

// The gradient that a step puts into the sums is that of the log-loss, by finite differences.
TEST(LogisticKernels, GradientIsThatOfTheLoss) {
  std::mt19937_64 random(9);
  for (int turn = 0; turn < 50; ++turn) {
    Example example = RandomExample(random);
    if (example.features.empty()) continue;
    std::vector<double> weights(kFeatures);
    for (double& w : weights) w = std::normal_distribution<double>(0, 0.3)(random);
    const Row row = example.row();
    const auto loss = [&] {
      double margin = 0;
      for (uint32_t i = 0; i < row.count; ++i)
        margin += weights[row.features[i]] * row.scale * (row.values ? row.values[i] : 1);
      return sparse::LogLoss(margin, example.label);
    };
    // An AdaGrad state with n = 0: after the step n = g².
    std::vector<float> state(2 * kFeatures);
    for (size_t f = 0; f < kFeatures; ++f) state[2 * f] = static_cast<float>(weights[f]);
    Scratch scratch;
    (*ChooseKernels("auto"))
        ->adagrad({1, 1, 0, 0}, state.data(), nullptr, row, example.label, &scratch);
    for (uint32_t i = 0; i < row.count; i += 7) {
      const uint32_t f = row.features[i];
      const double kept = weights[f];
      weights[f] = kept + 1e-5;
      const double above = loss();
      weights[f] = kept - 1e-5;
      const double below = loss();
      weights[f] = kept;
      const double gradient = (above - below) / 2e-5;
      EXPECT_NEAR(state[2 * f + 1], gradient * gradient, 1e-4 * (1e-2 + gradient * gradient));
    }
  }
}

// Algorithm 1 of McMahan et al. in doubles, word for word.
TEST(LogisticKernels, FtrlIsThePapersAlgorithm) {
  const Rule rule{0.3f, 0.5f, 0.2f, 0.1f};
  std::mt19937_64 random(2);
  double z = 0, n = 0;
  float state[2] = {};
  Scratch scratch;
  const uint32_t feature = 0;
  for (int turn = 0; turn < 200; ++turn) {
    const float x = std::normal_distribution<float>()(random);
    const float label = static_cast<float>(random() % 3 == 0);
    const double w = std::abs(z) <= rule.l1
                         ? 0
                         : -(z - (z < 0 ? -1 : 1) * rule.l1) /
                               ((rule.beta + std::sqrt(n)) / rule.alpha + rule.l2);
    const double g = (1 / (1 + std::exp(-w * x)) - label) * x;
    const double sigma = (std::sqrt(n + g * g) - std::sqrt(n)) / rule.alpha;
    z += g - sigma * w;
    n += g * g;
    const float margin =
        ScalarKernels()->ftrl(rule, state, nullptr, {&feature, &x, 1, 1}, label, &scratch);
    ASSERT_NEAR(margin, w * x, 1e-4);
  }
  EXPECT_NEAR(state[0], z, 1e-3);
  EXPECT_NEAR(state[1], n, 1e-3);
}

TEST(LogisticKernels, L1KeepsWeightsAtZero) {
  for (const std::string_view name : AvailableKernels()) {
    std::mt19937_64 random(4);
    std::vector<float> state(2 * kFeatures), weights(kFeatures);
    Scratch scratch;
    const Rule rule{0.5f, 0.1f, 3, 0};
    const Kernels& kernels = **ChooseKernels(name);
    for (int turn = 0; turn < 200; ++turn) {
      const Example example = RandomExample(random);
      kernels.ftrl(rule, state.data(), nullptr, example.row(), example.label, &scratch);
    }
    kernels.ftrl_weights(rule, state.data(), kFeatures, weights.data());
    const auto zeros = std::count(weights.begin(), weights.end(), 0.0f);
    EXPECT_GT(zeros, 400) << name;
  }
}

}  // namespace
}  // namespace shoal::learn::logistic
