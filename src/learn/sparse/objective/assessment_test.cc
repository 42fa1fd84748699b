#include "learn/sparse/objective/assessment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "learn/sparse/softmax_learner.h"

namespace shoal::learn::sparse {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Target TargetOf(LossKind kind) {
  Target target;
  target.loss.kind = kind;
  return target;
}

uint64_t Examples(const Assessment& assessment) {
  return std::accumulate(assessment.bins.begin(), assessment.bins.end(), uint64_t{0},
                         [](uint64_t sum, const PredictionBin& bin) { return sum + bin.examples; });
}

TEST(Assessment, BinsSayWhatBecameOfProbabilities) {
  std::vector<Scored> scored;
  for (int i = 0; i < 1000; ++i)  // a third of those at probability 1/4, all of those at 3/4
    scored.push_back({i % 2 == 0 ? -std::log(3.0f) : std::log(3.0f),
                      i % 2 == 0 ? (i % 6 == 0 ? 1.0f : 0.0f) : 1.0f});
  const Assessment assessment = AssessPredictions(TargetOf(LossKind::kLogistic), scored);
  EXPECT_EQ(assessment.examples, 1000u);
  // Equal predictions are never apart.
  ASSERT_EQ(assessment.bins.size(), 2u);
  EXPECT_EQ(assessment.bins[0].examples, 500u);
  EXPECT_NEAR(assessment.bins[0].predicted, 0.25, 1e-6);
  EXPECT_NEAR(assessment.bins[0].observed, 167.0 / 500, 1e-9);
  EXPECT_NEAR(assessment.bins[1].predicted, 0.75, 1e-6);
  EXPECT_EQ(assessment.bins[1].observed, 1);
  EXPECT_THAT(assessment.counts, ElementsAre(333, 0, 167, 500));
  EXPECT_THAT(assessment.classes, ElementsAre(0u, 1u));
  EXPECT_FALSE(assessment.others);
}

TEST(Assessment, BinsAreBoundedAndNotOfAFew) {
  for (const size_t count : {1u, 19u, 45u, 400u, 12345u}) {
    std::vector<Scored> scored;
    for (size_t i = 0; i < count; ++i)
      scored.push_back({static_cast<float>((i * 7919) % count) * 1e-3f, 0});
    const Assessment assessment = AssessPredictions(TargetOf(LossKind::kLogistic), scored);
    EXPECT_EQ(assessment.bins.size(), std::clamp<size_t>(count / 20, 1, 20)) << count;
    EXPECT_EQ(Examples(assessment), count);
    for (const PredictionBin& bin : assessment.bins)
      EXPECT_GE(bin.examples, std::min<size_t>(count, 20));
    for (size_t i = 1; i < assessment.bins.size(); ++i)
      EXPECT_LT(assessment.bins[i - 1].predicted, assessment.bins[i].predicted);
  }
}

TEST(Assessment, NumbersAreInTheLabelsUnit) {
  Target target = TargetOf(LossKind::kSquared);
  target.scale = {1000, 10};
  std::vector<Scored> scored;
  for (int i = 0; i <= 100; ++i) scored.push_back({0, static_cast<float>(i)});  // residual 10·i
  const Assessment assessment = AssessPredictions(target, scored);
  ASSERT_EQ(assessment.bins.size(), 1u);
  EXPECT_NEAR(assessment.bins[0].predicted, 1000, 1e-6);
  EXPECT_NEAR(assessment.bins[0].observed, 1500, 1e-6);
  ASSERT_EQ(assessment.residuals.size(), 11u);
  for (size_t i = 0; i <= 10; ++i)
    EXPECT_NEAR(assessment.residuals[i], 100.0 * static_cast<double>(i), 1e-3);
  EXPECT_TRUE(assessment.classes.empty());

  target.loss = {LossKind::kQuantile, 0.9f};
  for (size_t i = 0; i < scored.size(); ++i) scored[i] = {0, i < 30 ? -1.0f : 1.0f};
  EXPECT_NEAR(AssessPredictions(target, scored).bins[0].observed, 30.0 / 101, 1e-9);

  target.loss.kind = LossKind::kPoisson;
  target.scale = {0, 4};
  std::vector<Scored> counts = {{std::log(2.0f), 0.5f}};  // 8 predicted, 2 counted
  const Assessment counted = AssessPredictions(target, counts);
  EXPECT_NEAR(counted.bins[0].predicted, 8, 1e-5);
  EXPECT_NEAR(counted.residuals[5], -6, 1e-5);
}

TEST(Assessment, ManyClassesAreCountedAsTheFrequentOnesAndTheOthers) {
  std::vector<ScoredClass> scored;
  for (uint32_t c = 0; c < 100; ++c) {
    for (uint32_t i = 0; i < (c < 80 ? 1u : 5u); ++i)
      scored.push_back({0, c, c == 99 ? 3u : c, 0.5f});
  }
  const Assessment assessment = AssessPredictions(scored, 100);
  ASSERT_EQ(assessment.classes.size(), Assessment::kMostClasses);
  EXPECT_EQ(assessment.classes.front(), 80u);
  EXPECT_TRUE(assessment.others);
  ASSERT_EQ(assessment.counts.size(), 21u * 21u);
  EXPECT_EQ(assessment.counts[20 * 21 + 20], 80u);
  EXPECT_EQ(assessment.counts[19 * 21 + 20], 5u);  // 99, predicted as one of the others
  EXPECT_EQ(assessment.counts[0], 5u);
}

TEST(Assessment, ConfidenceIsTheProbabilityOfThePredictedClass) {
  const std::vector<float> margins = {0, std::log(2.0f), 0};
  EXPECT_NEAR(ScoreClass(margins, 0).confidence, 0.5, 1e-6);
}

Assessment Full() {
  std::vector<ScoredClass> scored;
  for (uint32_t i = 0; i < 2000; ++i)
    scored.push_back({0, i % 30, i % 7, 0.3f + static_cast<float>(i) * 1e-4f});
  Assessment full = AssessPredictions(scored, 30);
  full.residuals.assign(11, 0.5);
  return full;
}

TEST(Assessment, ComesBackFromJson) {
  const Assessment full = Full();
  const json::object saved{{"assessment", ToJson(full, "validation")}};
  const std::string text = ToText(saved);
  EXPECT_LT(text.size(), 10'000u);
  const auto read = AssessmentFromJson(*ParseJsonObject(text));
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Assessment& back = (*read)->assessment;
  EXPECT_EQ(back.examples, full.examples);
  EXPECT_EQ(back.classes, full.classes);
  EXPECT_EQ(back.others, full.others);
  EXPECT_EQ(back.counts, full.counts);
  EXPECT_EQ(back.residuals, full.residuals);
  ASSERT_EQ(back.bins.size(), full.bins.size());
  for (size_t i = 0; i < full.bins.size(); ++i) {  // the parser rounds the last bit
    EXPECT_EQ(back.bins[i].examples, full.bins[i].examples);
    EXPECT_NEAR(back.bins[i].predicted, full.bins[i].predicted, 1e-12);
    EXPECT_NEAR(back.bins[i].observed, full.bins[i].observed, 1e-12);
  }
  EXPECT_EQ((*read)->of, "validation");
  EXPECT_FALSE(AssessmentFromJson({})->has_value());
}

TEST(Assessment, MalformedJsonIsRefused) {
  const json::object good = ToJson(Full(), "test");
  const auto refused = [&](std::string_view field, json::value value) {
    json::object bad = good;
    bad[field] = std::move(value);
    const auto read = AssessmentFromJson({{"assessment", bad}});
    EXPECT_EQ(read.status().code(), Code::kDataLoss) << field;
    EXPECT_THAT(read.status().message(), HasSubstr("assessment")) << field;
  };
  refused("of", "moon");
  refused("examples", -1);
  refused("examples", "many");
  refused("bins", 7);
  refused("bins", json::array(21, json::array{1, 0.5, 0.5}));
  refused("bins", json::array{json::array{1, 0.5}});
  refused("bins", json::array{json::array{1.5, 0.5, 0.5}});
  refused("bins", json::array{json::array{1, "half", 0.5}});
  refused("residuals", json::array{1, 2});
  refused("residuals", json::array(12, 1));
  refused("classes", json::array(21, 1));
  refused("classes", json::array{1, 2, 3});  // no longer as many as rows
  refused("classes", json::array(20, 1e300));
  refused("confusion", json::array(21, json::array(3, 1)));
  refused("confusion", json::array(21, "row"));
  refused("confusion", json::array(500, json::array(500, 1)));
  EXPECT_EQ(AssessmentFromJson({{"assessment", 3}}).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace shoal::learn::sparse
