#include "learn/fm/kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "learn/fm/kernels_scalar.h"
#include "learn/fm/learner.h"
#include "learn/fm/test_steps.h"
#include "learn/sparse/test_examples.h"

namespace shoal::learn::fm {
namespace {

using sparse::Example;

constexpr uint32_t kFeatures = 300;

Example RandomExample(std::mt19937_64& random) { return sparse::RandomExample(random, kFeatures); }

Rule RuleWith(uint32_t factors, float init = 0.3f) {
  RuleOptions options;
  options.factors = factors;
  options.init = init;
  options.beta = 0.1f;
  options.l2 = 0.01f;
  options.seed = 3;
  return MakeRule(options);
}

TEST(FmKernels, EveryInstructionSetAgreesWithTheReference) {
  for (const std::string_view name : AvailableKernels()) {
    for (const uint32_t factors : {1u, 4u, 8u, 13u, 40u}) {
      const Rule rule = RuleWith(factors);
      const std::string what = fmt::format("{} {}", name, factors);
      SideBySide both(rule, *ChooseKernels(name), ScalarKernels(), kFeatures);
      std::mt19937_64 random(5);
      for (int turn = 0; turn < 60; ++turn) both.Turn(RandomExample(random).row(), turn, what);
      both.ExpectEqualStates(what);
    }
  }
}

TEST(FmKernels, EveryInstructionSetReplaysAsTheReference) {
  for (const std::string_view name : AvailableKernels()) {
    for (const uint32_t factors : {1u, 4u, 8u, 13u, 40u}) {
      const Rule rule = RuleWith(factors);
      std::mt19937_64 random(7);
      std::normal_distribution<float> normal(0, 0.3f);
      const Example example = RandomExample(random);
      const Row row = example.row();
      const size_t stride = factors + 1;
      std::vector<float> weights(row.count * stride + kLanes), shift(weights.size());
      for (float& weight : weights) weight = normal(random);
      for (float& weight : shift) weight = normal(random);
      std::vector<float> gradients[2], both, shifted = {1, 1};
      for (const int i : {0, 1}) {
        gradients[i].resize(weights.size());
        const Kernels* const kernels = i == 0 ? *ChooseKernels(name) : ScalarKernels();
        both.push_back(kernels->gradients(rule, {weights.data(), shift.data(), stride}, row,
                                          gradients[i].data(), &shifted[i]));
      }
      const std::string what = fmt::format("{} {}", name, factors);
      EXPECT_NEAR(both[0], both[1], 1e-3f * (1 + std::abs(both[1]))) << what;
      EXPECT_NEAR(shifted[0], shifted[1], 1e-3f * (1 + std::abs(shifted[1]))) << what;
      for (size_t at = 0; at < row.count * stride; ++at)
        EXPECT_NEAR(gradients[0][at], gradients[1][at], 1e-3f) << what << " " << at;
    }
  }
}

// ½ Σ over all ordered pairs of different features, in doubles: Rendle's equation 1.
TEST(FmKernels, PairsAreTheSumOverAllPairs) {
  const Rule rule = RuleWith(5);
  std::mt19937_64 random(8);
  std::vector<float> state(rule.width() * kFeatures);
  Scratch scratch;
  for (int turn = 0; turn < 20; ++turn) {
    const Example example = RandomExample(random);
    const Row row = example.row();
    double expected = 0;
    const auto x = [&](uint32_t i) {
      return static_cast<double>(row.scale) * (row.values == nullptr ? 1.0 : row.values[i]);
    };
    for (uint32_t i = 0; i < row.count; ++i) {
      for (uint32_t j = i + 1; j < row.count; ++j) {
        double dot = 0;
        for (uint32_t f = 0; f < 5; ++f) {
          dot += static_cast<double>(InitialFactor(rule, row.features[i], f)) *
                 static_cast<double>(InitialFactor(rule, row.features[j], f));
        }
        expected += dot * x(i) * x(j);
      }
    }
    const float got = (*ChooseKernels("auto"))->pairs(rule, state.data(), row, &scratch);
    EXPECT_NEAR(got, expected, 1e-4 * (1 + std::abs(expected)));
  }
}

// The gradient that a step takes is that of the log-loss, by finite differences of the loss.
TEST(FmKernels, GradientIsThatOfTheLoss) {
  RuleOptions options;
  options.factors = 6;
  options.init = 0.5f;
  const Rule rule = MakeRule(options);
  std::mt19937_64 random(9);
  const Kernels& kernels = **ChooseKernels("auto");
  for (int turn = 0; turn < 30; ++turn) {
    const Example example = RandomExample(random);
    const Row row = example.row();
    if (row.count < 2) continue;
    const float label = static_cast<float>(turn % 2);
    std::vector<float> state(rule.width() * kFeatures);
    Scratch scratch;
    const auto loss = [&] {
      return sparse::LogLoss(kernels.pairs(rule, state.data(), row, &scratch), label);
    };
    std::vector<float> stepped = state;
    const float margin = kernels.pairs(rule, stepped.data(), row, &scratch);
    kernels.step(rule, stepped.data(), row, sparse::Probability(margin) - label, &scratch);
    for (uint32_t i = 0; i < row.count; i += 5) {
      const size_t first = size_t{rule.width()} * row.features[i] + kLinearFloats;
      for (uint32_t f = 0; f < rule.factors; ++f)
        ExpectGradient(rule, stepped, first + f, loss, &state, 2e-3);
    }
  }
}

TEST(FmKernels, FactorsBeginRandomAndTheSameEverywhere) {
  const Rule rule = RuleWith(8, 0.1f);
  double sum = 0, squares = 0;
  constexpr int kMany = 20000;
  for (uint32_t feature = 0; feature < kMany; ++feature) {
    const double v = InitialFactor(rule, feature, feature % 8);
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / kMany, 0, 0.003);
  EXPECT_NEAR(std::sqrt(squares / kMany), 0.1, 0.003);
  EXPECT_NE(InitialFactor(rule, 1, 0), InitialFactor(rule, 1, 1));
  EXPECT_NE(InitialFactor(rule, 1, 0), InitialFactor(rule, 2, 0));
}

TEST(FmKernels, TheModelGivesTheMarginOfTheState) {
  Params params;
  params.factors = 11;
  params.factor_init = 0.3;
  const FmLearner learner = FmLearner::Make(params).value();
  std::mt19937_64 random(6);
  std::vector<float> state(learner.width() * kFeatures), bias(learner.width());
  Scratch scratch;
  Example example;
  for (int turn = 0; turn < 100; ++turn) {
    example = RandomExample(random);
    learner.Step(state.data(), bias.data(), example.row(), static_cast<float>(turn % 2), &scratch);
  }
  model::FactorModel model = learner.EmptyModel(kFeatures);
  learner.FillModel(state.data(), 0, kFeatures, &model);
  model.linear.bias = learner.BiasOf(bias.data());
  const float margin = sparse::Margin(model, example.row(), &scratch);
  EXPECT_NEAR(learner.Step(state.data(), bias.data(), example.row(), 1, &scratch), margin,
              1e-3 * (1 + std::abs(margin)));
}

}  // namespace
}  // namespace shoal::learn::fm
