#include "learn/ffm/kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

#include "learn/ffm/kernels_scalar.h"
#include "learn/ffm/learner.h"
#include "learn/fm/test_steps.h"
#include "learn/sparse/test_examples.h"

namespace shoal::learn::ffm {
namespace {

using sparse::Example;

constexpr uint32_t kFeatures = 60;

// `crowded`: fields have several features or none, and a feature is of any field.
Example RandomExample(std::mt19937_64& random, uint32_t fields, bool crowded) {
  Example example;
  const bool ones = random() % 2 == 0;
  std::normal_distribution<float> normal;
  for (uint32_t f = 0; f < kFeatures; ++f) {
    if (random() % 5 != 0) continue;
    const auto field = static_cast<uint16_t>(crowded ? random() % fields : f * fields / kFeatures);
    if (!crowded && !example.fields.empty() && example.fields.back() == field) continue;
    example.features.push_back(f);
    example.fields.push_back(field);
    if (!ones) example.values.push_back(normal(random));
  }
  return example;
}

Rule RuleOf(uint32_t fields, uint32_t factors) {
  fm::RuleOptions options;
  options.fields = fields;
  options.factors = fields * factors;
  options.init = 0.5f;
  options.beta = 0.1f;
  options.l2 = 0.01f;
  options.seed = 3;
  return fm::MakeRule(options);
}

// v of (feature, field), as doubles.
double Factor(const Rule& rule, const std::vector<float>& state, uint32_t feature, uint32_t field,
              uint32_t d) {
  const uint32_t slot = field * rule.per_field() + d;
  return static_cast<double>(state[size_t{rule.width()} * feature + fm::kLinearFloats + slot]) +
         static_cast<double>(fm::InitialFactor(rule, feature, slot));
}

// Equation 4 by itself, pair by pair, in doubles.
double PairsByDefinition(const Rule& rule, const std::vector<float>& state, const Row& row) {
  const auto x = [&](uint32_t i) {
    return static_cast<double>(row.scale) *
           (row.values == nullptr ? 1.0 : static_cast<double>(row.values[i]));
  };
  double sum = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    for (uint32_t j = i + 1; j < row.count; ++j) {
      for (uint32_t d = 0; d < rule.per_field(); ++d) {
        sum += Factor(rule, state, row.features[i], row.fields[j], d) *
               Factor(rule, state, row.features[j], row.fields[i], d) * x(i) * x(j);
      }
    }
  }
  return sum;
}

TEST(FfmKernels, EveryInstructionSetAgreesWithTheReference) {
  for (const std::string_view name : AvailableKernels()) {
    for (const auto& [fields, factors] :
         {std::pair{1u, 3u}, {2u, 4u}, {7u, 4u}, {30u, 2u}, {5u, 11u}}) {
      const Rule rule = RuleOf(fields, factors);
      const std::string what = fmt::format("{} {} fields", name, fields);
      fm::SideBySide both(rule, *ChooseKernels(name), ScalarKernels(), kFeatures);
      std::mt19937_64 random(5);
      for (int turn = 0; turn < 60; ++turn) {
        const Example example = RandomExample(random, fields, turn % 2 == 0);
        const double defined = PairsByDefinition(rule, both.state(), example.row());
        ASSERT_NEAR(both.Turn(example.row(), turn, what), defined, 1e-4 * (1 + std::abs(defined)))
            << what << " turn " << turn;
      }
      both.ExpectEqualStates(what);
    }
  }
}

// The gradient of a step is that of the log-loss, by finite differences of the definition, and
// vectors without a pair do not change.
TEST(FfmKernels, GradientIsThatOfTheLoss) {
  for (const std::string_view name : AvailableKernels()) {
    const Kernels& kernels = **ChooseKernels(name);
    Rule rule = RuleOf(4, 3);
    rule.l2 = 0;
    std::mt19937_64 random(9);
    for (int turn = 0; turn < 12; ++turn) {
      const Example example = RandomExample(random, 4, turn % 2 == 0);
      const Row row = example.row();
      if (row.count < 2) continue;
      const float label = static_cast<float>(turn % 2);
      std::vector<float> state(rule.width() * kFeatures);
      Scratch scratch;
      std::vector<float> stepped = state;
      const float margin = kernels.pairs(rule, stepped.data(), row, &scratch);
      kernels.step(rule, stepped.data(), row, sparse::Probability(margin) - label, &scratch);
      const auto loss = [&] { return sparse::LogLoss(PairsByDefinition(rule, state, row), label); };
      for (uint32_t i = 0; i < row.count; i += 2) {
        const size_t first = size_t{rule.width()} * row.features[i] + fm::kLinearFloats;
        SCOPED_TRACE(name);
        for (uint32_t slot = 0; slot < rule.factors; ++slot)
          fm::ExpectGradient(rule, stepped, first + slot, loss, &state, 1e-3);
      }
    }
  }
}

// Vectors outside of a row's features and fields do not change, for any λ.
TEST(FfmKernels, VectorsWithoutPairsStay) {
  for (const std::string_view name : AvailableKernels()) {
    const Kernels& kernels = **ChooseKernels(name);
    const Rule rule = RuleOf(5, 2);
    std::vector<float> state(rule.width() * kFeatures);
    const std::vector<uint32_t> features = {3, 9, 20};
    const std::vector<uint16_t> fields = {4, 1, 1};
    const Row row{features.data(), nullptr, 3, 1, fields.data()};
    Scratch scratch;
    (void)kernels.pairs(rule, state.data(), row, &scratch);
    kernels.step(rule, state.data(), row, 0.5f, &scratch);
    const auto moved = [&](uint32_t feature, uint32_t field) {
      return state[size_t{rule.width()} * feature + fm::kLinearFloats + 2 * field] != 0;
    };
    for (uint32_t feature = 0; feature < kFeatures; ++feature) {
      for (uint32_t field = 0; field < 5; ++field) {
        const bool met = (feature == 3 && field == 1) ||
                         ((feature == 9 || feature == 20) && (field == 1 || field == 4));
        EXPECT_EQ(moved(feature, field), met) << name << " " << feature << " of " << field;
      }
    }
  }
}

TEST(FfmLearner, TheModelGivesTheMarginOfTheState) {
  Params params;
  params.factors = 3;
  params.factor_init = 0.3;
  const FfmLearner unready = FfmLearner::Make(params).value();
  const auto learner = unready.ForFields(6).value();
  std::mt19937_64 random(6);
  std::vector<float> state(learner->width() * kFeatures), bias(learner->width());
  Scratch scratch, other;
  Example example;
  for (int turn = 0; turn < 100; ++turn) {
    example = RandomExample(random, 6, turn % 2 == 0);
    learner->Step(state.data(), bias.data(), example.row(), static_cast<float>(turn % 2), &scratch);
  }
  model::FactorModel model = learner->EmptyModel(kFeatures);
  learner->FillModel(state.data(), 0, kFeatures, &model);
  model.linear.bias = learner->BiasOf(bias.data());
  const float margin = sparse::Margin(model, example.row(), &other);
  EXPECT_NEAR(learner->Step(state.data(), bias.data(), example.row(), 1, &scratch), margin,
              1e-3 * (1 + std::abs(margin)));
  // A field that the model does not know has no pairs.
  example.features = {1, 2};
  example.fields = {6, 0};
  example.values.clear();
  const Row row = example.row();
  EXPECT_NEAR(sparse::Margin(model, row, &other),
              model.linear.bias + row.scale * (model.linear.weights[1] + model.linear.weights[2]),
              1e-5);
  EXPECT_EQ(unready.ForFields(65536).value()->fields(), 65536u);
  params.factors = 5;
  EXPECT_FALSE(FfmLearner::Make(params)->ForFields(65536).ok());
}

}  // namespace
}  // namespace shoal::learn::ffm
