#include "learn/fm/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "learn/fm/kernels_scalar.h"
#include "learn/fm/learner.h"

namespace shoal::learn::fm {
namespace {

constexpr size_t kFeatures = 300;

struct Example {
  std::vector<uint32_t> features;
  std::vector<float> values;  // empty: ones
  Row row() const {
    const float* const data = values.empty() ? nullptr : values.data();
    return {features.data(), data, static_cast<uint32_t>(features.size()),
            sparse::UnitScale(data, features.size())};
  }
};

Example RandomExample(std::mt19937_64& random) {
  Example example;
  const bool ones = random() % 2 == 0;
  const uint64_t one_in = 1 + random() % 40;
  std::normal_distribution<float> normal;
  for (uint32_t f = 0; f < kFeatures; ++f) {
    if (random() % one_in != 0) continue;
    example.features.push_back(f);
    if (!ones) example.values.push_back(normal(random));
  }
  return example;
}

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
    const Kernels& kernels = **ChooseKernels(name);
    for (const uint32_t factors : {1u, 4u, 8u, 13u, 40u}) {
      const Rule rule = RuleWith(factors);
      std::mt19937_64 random(5);
      std::vector<float> a(rule.width() * kFeatures), b(a.size());
      Scratch scratch_a, scratch_b;
      for (int turn = 0; turn < 60; ++turn) {
        const Example example = RandomExample(random);
        const float got = kernels.pairs(rule, a.data(), example.row(), &scratch_a);
        const float expected = ScalarKernels()->pairs(rule, b.data(), example.row(), &scratch_b);
        ASSERT_NEAR(got, expected, 2e-3 * (1 + std::abs(expected))) << name << " turn " << turn;
        const float error = static_cast<float>(turn % 3) - 1;
        kernels.step(rule, a.data(), example.row(), error, &scratch_a);
        ScalarKernels()->step(rule, b.data(), example.row(), error, &scratch_b);
      }
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], 5e-3 * (1 + std::abs(b[i]))) << name << " state " << i;
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
      const double margin = kernels.pairs(rule, state.data(), row, &scratch);
      return label > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin));
    };
    std::vector<float> stepped = state;
    const float margin = kernels.pairs(rule, stepped.data(), row, &scratch);
    kernels.step(rule, stepped.data(), row, sparse::Probability(margin) - label, &scratch);
    for (uint32_t i = 0; i < row.count; i += 5) {
      for (uint32_t f = 0; f < rule.factors; ++f) {
        const size_t at = size_t{rule.width()} * row.features[i] + kLinearFloats + f;
        constexpr float kBit = 0x1p-6f;
        state[at] = kBit;
        const double above = loss();
        state[at] = -kBit;
        const double below = loss();
        state[at] = 0;
        const double gradient = (above - below) / (2 * static_cast<double>(kBit));
        // AdaGrad's sum began at 0, so it is g² now, and D moved against g.
        const double root = std::sqrt(static_cast<double>(stepped[at + rule.stored]));
        EXPECT_NEAR(std::copysign(root, -stepped[at]), gradient, 2e-3 + 0.02 * std::abs(gradient));
      }
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
