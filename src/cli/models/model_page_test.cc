#include "cli/models/model_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/models/html.h"

namespace shoal::cli {
namespace {

using learn::sparse::Assessment;
using learn::sparse::FeatureEffect;
using learn::sparse::ModelDescription;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "<script>alert('x')</script>\"><img src=x onerror=y>&\x01\xff";

constexpr std::string_view kDots = "…";

Assessment AssessmentOf(size_t classes) {
  Assessment assessment;
  assessment.examples = 40;
  assessment.bins = {{20, 0.2, 0.1}, {20, 0.8, 1}};
  for (uint32_t c = 0; c < classes; ++c) assessment.classes.push_back(c);
  assessment.counts.assign(classes * classes, 3);
  return assessment;
}

json::object MetadataOf(std::string_view loss, const Assessment& assessment) {
  json::array epochs;
  for (int i = 1; i <= 3; ++i)
    epochs.push_back({{"epoch", i}, {"train_loss", 1.0 / i}, {"validation", 2.0 / i}});
  return {{"algorithm", kHostile},
          {"created", kHostile},
          {"parameters", {{kHostile, kHostile}}},
          {"epochs", epochs},
          {"best_epoch", 2},
          {"data",
           {{"files", {kHostile, "train.csv"}},
            {"columns",
             {{"header", true},
              {"label", kHostile},
              {"names", {kHostile, "age"}},
              {"categorical", json::array()},
              {"classes", {kHostile, "other"}}}}}},
          {"training", {{"examples", 100}, {"epochs", 3}, {"workers", 1}}},
          {"target", {{"loss", loss}}},
          {"held_out", {{"auc", 0.9}, {"log_loss", 0.3}, {"examples", 40}}},
          {"assessment", ToJson(assessment, "test")}};
}

ModelDescription Description() {
  ModelDescription model;
  model.effects = {FeatureEffect{kHostile, kHostile, -2, true, 3, 4, -0.5},
                   FeatureEffect{.name = "age", .weight = 1}};
  model.nonzero = 2;
  return model;
}

std::string PageOf(const json::object& metadata, const ModelDescription& model) {
  const auto page = RenderModelPage({kHostile, metadata, &model, std::nullopt});
  EXPECT_TRUE(page.ok()) << page.status().message();
  return page.ok() ? *page : "";
}

TEST(HtmlText, EscapesAndBounds) {
  EXPECT_EQ(HtmlText("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(HtmlText("\x01\xff"), "\uFFFD\\xff");
  EXPECT_EQ(HtmlText(std::string(1000, 'x')).size(), 200 + kDots.size());
  std::string wide;
  for (int i = 0; i < 150; ++i) wide += "é";
  EXPECT_EQ(HtmlText(wide).size(), 200 + kDots.size());  // no half character
  EXPECT_TRUE(HtmlText(wide).ends_with(kDots));
}

TEST(ModelPage, EscapesAllNames) {
  const std::string page = PageOf(MetadataOf("logistic", AssessmentOf(2)), Description());
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&gt;&lt;img"));
  EXPECT_THAT(page, Not(HasSubstr("\x01")));
  EXPECT_THAT(page, Not(HasSubstr("\xff\"")));
}

TEST(ModelPage, NeedsNothingFromOutside) {
  std::string page = PageOf(MetadataOf("logistic", AssessmentOf(2)), Description());
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  const std::string xmlns = "xmlns=\"http://www.w3.org/2000/svg\"";
  for (size_t at = 0; (at = page.find(xmlns)) != page.npos;) page.erase(at, xmlns.size());
  for (const char* const reference : {"http:", "https:", "href=", "url(", "@import", "<link"})
    EXPECT_THAT(page, Not(HasSubstr(reference)));
}

TEST(ModelPage, HasWhatWasMeasured) {
  const std::string page = PageOf(MetadataOf("logistic", AssessmentOf(2)), Description());
  for (const char* const part :
       {"Loss by epoch", "<polyline", "The model of epoch 2 was saved", "Calibration",
        "expected calibration error): 15.0 %", "Confusion", "Strongest features", "-2",
        "Parameters", "Columns of the training"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, Not(HasSubstr("Residuals")));
}

TEST(ModelPage, NumbersHaveResidualsInPlaceOfConfusion) {
  Assessment assessment = AssessmentOf(0);
  assessment.residuals = {-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 1234};
  for (const char* const loss : {"squared", "quantile", "poisson"}) {
    const std::string page = PageOf(MetadataOf(loss, assessment), Description());
    EXPECT_THAT(page, HasSubstr("<td>greatest</td><td>1234</td>"));
    EXPECT_THAT(page, Not(HasSubstr("Confusion")));
  }
}

TEST(ModelPage, SeveralClasses) {
  json::object metadata = MetadataOf("softmax", AssessmentOf(20));
  Assessment assessment = AssessmentOf(20);
  assessment.others = true;
  assessment.counts.assign(21 * 21, 1);
  metadata["assessment"] = ToJson(assessment, "validation");
  const std::string page = PageOf(metadata, Description());
  EXPECT_THAT(page, HasSubstr("all others"));
  EXPECT_THAT(page, HasSubstr("class 19"));  // has no name
  EXPECT_THAT(page, HasSubstr("the validation data"));
}

TEST(ModelPage, AModelWithoutMeasurementsSaysSo) {
  json::object metadata = MetadataOf("logistic", AssessmentOf(2));
  metadata.erase("assessment");
  metadata.erase("epochs");
  EXPECT_THAT(PageOf(metadata, Description()), HasSubstr("without measurements"));
  EXPECT_THAT(PageOf({}, ModelDescription()), HasSubstr("without measurements"));
}

TEST(ModelPage, NumbersThatCannotBeDrawnAreLeftOut) {
  json::object metadata = MetadataOf("logistic", AssessmentOf(2));
  metadata["epochs"] = json::array{json::object{{"epoch", 1e308}, {"train_loss", 1e308}},
                                   json::object{{"epoch", 2}, {"train_loss", 1e308}}, 3, "x"};
  EXPECT_THAT(PageOf(metadata, Description()), Not(HasSubstr("Loss by epoch")));
  metadata["assessment"].as_object()["bins"] = json::array{json::array{1, 1e308, 1e308}};
  const std::string page = PageOf(metadata, Description());
  EXPECT_THAT(page, Not(HasSubstr("nan")));
}

TEST(ModelPage, MalformedMetadataIsRefused) {
  json::object metadata = MetadataOf("logistic", AssessmentOf(2));
  metadata["assessment"].as_object()["bins"] = 3;
  const ModelDescription model;
  EXPECT_EQ(RenderModelPage({"m", metadata, &model, std::nullopt}).status().code(),
            Code::kDataLoss);
}

TEST(ModelPage, PredictionsOfOtherData) {
  const ModelDescription model = Description();
  const auto page = RenderModelPage(
      {"m", MetadataOf("logistic", AssessmentOf(2)), &model,
       PredictedData{{kHostile}, {{"auc", 0.75}, {"examples", 9}}, AssessmentOf(2)}});
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(*page, HasSubstr("Predictions of m"));
  EXPECT_THAT(*page, HasSubstr("AUC 0.75, of 9 examples"));
  EXPECT_THAT(*page, Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace shoal::cli
