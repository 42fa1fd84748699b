#include "learn/sparse/objective/loss.h"

#include <gtest/gtest.h>

#include <random>

#include "learn/sparse/objective/label_guess.h"
#include "learn/sparse/objective/labels.h"
#include "learn/sparse/objective/quality.h"

namespace shoal::learn::sparse {
namespace {

constexpr LossKind kKinds[] = {LossKind::kLogistic, LossKind::kHinge, LossKind::kSquared,
                               LossKind::kQuantile, LossKind::kPoisson};

// By which the reported loss is a multiple of the one whose derivative is the error.
float Multiple(LossKind kind) {
  return kind == LossKind::kSquared || kind == LossKind::kPoisson ? 2.0f : 1.0f;
}

TEST(SparseLoss, ErrorIsTheDerivative) {
  std::mt19937_64 random(4);
  std::normal_distribution<float> normal;
  for (const LossKind kind : kKinds) {
    const Loss loss{kind, 0.8f};
    for (int i = 0; i < 200; ++i) {
      const float margin = normal(random);
      const float label = loss.predicts_numbers() ? std::abs(normal(random)) : float(i % 2);
      const float step = 1e-2f;
      const bool kink = kind == LossKind::kHinge ? std::abs(std::abs(margin) - 1) < 2 * step
                                                 : std::abs(margin - label) < 2 * step;
      if (kink) continue;
      const float slope =
          (LossOf(loss, margin + step, label) - LossOf(loss, margin - step, label)) / (2 * step);
      EXPECT_NEAR(Multiple(kind) * ErrorOf(loss, margin, label), slope,
                  0.02f * (1 + std::abs(slope)))
          << NameOf(kind) << " " << margin << " " << label;
    }
  }
}

TEST(SparseLoss, CurvatureIsTheMeanOfBothEnds) {
  for (const LossKind kind : kKinds) {
    const Loss loss{kind, 0.5f};
    const float near = MeanCurvature(loss, 0.3f, 0.3005f, 2);
    EXPECT_GE(near, 0) << NameOf(kind);
    EXPECT_GE(MeanCurvature(loss, -2, 2, 1), 0) << NameOf(kind);
  }
  EXPECT_FLOAT_EQ(MeanCurvature({LossKind::kSquared, 0.5f}, -1, 3, 7), 1);
}

TEST(SparseLoss, OneWrongStepOfPoissonStaysFinite) {
  const Loss loss{LossKind::kPoisson, 0.5f};
  EXPECT_TRUE(std::isfinite(ErrorOf(loss, 1e6f, 0)));
  EXPECT_TRUE(std::isfinite(LossOf(loss, 1e6f, 3)));
}

// So that its square does not outweigh all other steps.
TEST(SparseLoss, TheErrorOfAFarTooLargeCountIsBounded) {
  const Loss loss{LossKind::kPoisson, 0.5f};
  EXPECT_FLOAT_EQ(ErrorOf(loss, std::log(90.0f), 0), 90);
  EXPECT_FLOAT_EQ(ErrorOf(loss, std::log(250.0f), 2), 248);
  EXPECT_FLOAT_EQ(ErrorOf(loss, 14, 0), 100);
  EXPECT_FLOAT_EQ(ErrorOf(loss, 14, 2), 298);
}

TEST(SparseLoss, IsGuessedFromTheLabels) {
  EXPECT_EQ(GuessLossOf({"<=50K", ">50K"}), LossKind::kLogistic);
  EXPECT_EQ(GuessLossOf({"-1", "0", "1"}), LossKind::kLogistic);
  EXPECT_EQ(GuessLossOf({"7"}), LossKind::kLogistic);
  EXPECT_EQ(GuessLossOf({"a", "b", "c"}), LossKind::kSoftmax);
  EXPECT_EQ(GuessLossOf({"1", "2", "3"}), LossKind::kSoftmax);
  EXPECT_EQ(GuessLossOf({"1.5", "2", "3"}), LossKind::kSquared);
  std::vector<std::string> many;
  for (int i = 0; i < 21; ++i) many.push_back(std::to_string(i));
  EXPECT_EQ(GuessLossOf(many), LossKind::kSquared);
}

TEST(SparseLoss, LabelsGetAScale) {
  data::ColumnSummary labels;
  for (const double y : {1e9 + 1, 1e9 + 3}) labels.Add(y);
  const LabelScale scale = *LabelScaleOf(LossKind::kSquared, labels);
  EXPECT_FLOAT_EQ(scale.Scaled(1e9 + 3), 1);
  const Target target{{LossKind::kSquared, 0.5f}, scale, {}};
  EXPECT_DOUBLE_EQ(target.ValueOf(-1), 1e9 + 1);
  EXPECT_EQ(TargetFromJson({{"target", ToJson(target)}})->scale, scale);
  data::ColumnSummary alike;
  for (int i = 0; i < 3; ++i) alike.Add(5);
  EXPECT_EQ(LabelScaleOf(LossKind::kSquared, alike).status().message(),
            "label: all 3 examples have 5; expected different numbers");
}

TEST(SparseQuality, OfNumbersIsInTheirUnit) {
  const Target target{{LossKind::kSquared, 0.5f}, {100, 10}, {}};
  std::vector<Scored> scored = {{1, 0}, {-1, -1}, {0, 1}};  // 110 for 100, 90 for 90, 100 for 110
  const Quality quality = MeasureQuality(target, scored);
  EXPECT_NEAR(quality.rmse, std::sqrt(200.0 / 3), 1e-6);
  EXPECT_NEAR(quality.mae, 20.0 / 3, 1e-6);
  EXPECT_NEAR(quality.r2, 0, 1e-6);
  EXPECT_NEAR(quality.loss, 200.0 / 3, 1e-4);
  EXPECT_TRUE(std::isnan(quality.auc));
}

TEST(SparseQuality, OfClassesCountsEachClassAlike) {
  const float margins[] = {2, 1, 0};
  const std::vector<ScoredClass> scored = {ScoreClass(margins, 0), ScoreClass(margins, 0),
                                           ScoreClass(margins, 1)};
  const Quality quality = MeasureQuality(scored, 3);
  EXPECT_NEAR(quality.accuracy, 2.0 / 3, 1e-9);
  EXPECT_NEAR(quality.macro_f1, 0.4, 1e-9);  // (0.8 + 0) / 2: nobody has class 2
  const double all = std::log(std::exp(2.0) + std::exp(1.0) + 1);
  EXPECT_NEAR(quality.log_loss, (3 * all - 5) / 3, 1e-5);
}

TEST(ClassWeights, AreNamedOrAnError) {
  const auto weights = ParseClassWeights("a=2,b=0.5,x=y=3");
  ASSERT_TRUE(weights.ok());
  ASSERT_EQ(weights->size(), 3u);
  EXPECT_EQ((*weights)[2], std::pair(std::string("x=y"), 3.0));
  for (const char* wrong : {"a", "a=", "a=-1", "a=nan", "a=1,,b=2"})
    EXPECT_FALSE(ParseClassWeights(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace shoal::learn::sparse
