// Whole trainings on tables in one process.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "learn/sparse/test_sparse_job.h"

namespace shoal::learn::sparse {
namespace {

// The column of labels, which training took from the first place, is missing: its place is not the
// label's then, and there is no quality to tell.
TEST_F(SparseJob, CsvWithoutLabelsIsPredictedAsWithThem) {
  std::string with = "class,a,b\n", without = "a,b\n", bare = "";
  for (int i = 0; i < 2000; ++i) {
    const std::string cells = fmt::format("x{},{}\n", i % 7, i % 2);
    with += fmt::format("{},{}", i % 7 < 3 ? 1 : 0, cells);
    without += cells;
    bare += cells;
  }
  format_ = data::ExampleFormat::kCsv;
  ASSERT_TRUE(WriteFileAtomically(train_, with).ok() && WriteFileAtomically(test_, with).ok());
  ASSERT_TRUE(Run(1, 1)[0].ok());
  const auto labelled = PredictTest();
  ASSERT_TRUE(labelled.ok()) << labelled.status().message();
  ASSERT_TRUE(labelled->quality.has_value());
  for (const std::string& text : {without, bare}) {
    ASSERT_TRUE(WriteFileAtomically(test_, text).ok());
    const auto predicted = PredictTest();
    ASSERT_TRUE(predicted.ok()) << predicted.status().message();
    EXPECT_FALSE(predicted->quality.has_value());
    EXPECT_EQ(predicted->probabilities, labelled->probabilities);
  }
}

TEST_F(SparseJob, ATableOfAHeaderOnlyIsToldAsSuch) {
  format_ = data::ExampleFormat::kCsv;
  params_.label = "y";
  ASSERT_TRUE(WriteFileAtomically(train_, "y,a,b\n").ok());
  ASSERT_TRUE(WriteFileAtomically(test_, "y,a,b\n").ok());
  const auto outcomes = Run(1, 1);
  ASSERT_FALSE(outcomes[0].ok());
  EXPECT_EQ(outcomes[0].status().code(), Code::kInvalidArgument);
  EXPECT_EQ(outcomes[0].status().message(),
            "the training data holds no example with a feature; expected rows of csv with a label "
            "and a value in another column; a line with the columns' names is no row "
            "(docs/formats/examples.md)");
}

TEST_F(SparseJob, CsvWithNamesAndClasses) {
  std::mt19937_64 random(3);
  const auto lines = [&](int count) {
    std::string text = "town,height,\"zip, code\",label\n";
    for (int i = 0; i < count; ++i) {
      const uint64_t town = random() % 5, zip = random() % 7;
      const double height = static_cast<double>(random() % 100) / 50 - 1;
      const double margin = static_cast<double>(town) - 2 + 3 * height + (zip == 3 ? 3 : 0);
      text += fmt::format("town{},{},{},{}\n", town, height, zip, margin > 0 ? 1 : 0);
    }
    return text;
  };
  ASSERT_TRUE(WriteFileAtomically(train_, lines(4000)).ok());
  ASSERT_TRUE(WriteFileAtomically(test_, lines(1000)).ok());
  format_ = data::ExampleFormat::kCsv;
  params_.label = "label";
  params_.categorical = "3";
  params_.normalize = "none";
  params_.epochs = 10;
  for (const int workers : {1, 3}) {
    const auto outcomes = Run(1, workers);
    ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
    EXPECT_GT(outcomes[0]->held_out.auc, 0.99) << workers;
    const auto predictions = PredictTest();
    ASSERT_TRUE(predictions.ok()) << predictions.status().message();
    EXPECT_NEAR(predictions->quality->auc, outcomes[0]->held_out.auc, 1e-6);
  }
}

TEST(EpochsFor, SmallTablesGetMore) {
  EXPECT_EQ(EpochsFor(100, Normalization::kColumns), 30);
  EXPECT_EQ(EpochsFor(20'001, Normalization::kColumns), 10);
  EXPECT_EQ(EpochsFor(10'000'000, Normalization::kColumns), 2);
  EXPECT_EQ(EpochsFor(100, Normalization::kRows), 2);
}

// Multiplying columns and moving their origin changes nothing, however many workers there are.
TEST_F(SparseJob, CsvColumnsMayHaveAnyUnitAndOrigin) {
  const auto lines = [](int count, uint64_t seed, bool moved) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::string text = "label,a,b,c,d\n";
    for (int i = 0; i < count; ++i) {
      const double a = normal(random), b = normal(random), c = normal(random), d = normal(random);
      const bool label = a - 2 * b + 3 * c + d + normal(random) > 0;
      text += moved ? fmt::format("{:d},{},{},{},{}\n", label, 1e6 * a + 5e8, 1e-6 * b, c - 40,
                                  -1e3 * d)
                    : fmt::format("{:d},{},{},{},{}\n", label, a, b, c, d);
    }
    return text;
  };
  format_ = data::ExampleFormat::kCsv;
  params_.label = "label";
  params_.normalize = "auto";
  params_.epochs = 3;
  params_.deterministic = true;
  for (const int workers : {1, 3}) {
    double loss[2];
    for (const bool moved : {false, true}) {
      ASSERT_TRUE(WriteFileAtomically(train_, lines(6000, 1, moved)).ok());
      ASSERT_TRUE(WriteFileAtomically(test_, lines(2000, 2, moved)).ok());
      const auto outcomes = Run(1, workers);
      ASSERT_TRUE(outcomes[0].ok()) << outcomes[0].status().message();
      loss[moved] = outcomes[0]->held_out.log_loss;
      EXPECT_GT(outcomes[0]->held_out.auc, 0.97) << workers;
      const auto predictions = PredictTest();
      ASSERT_TRUE(predictions.ok()) << predictions.status().message();
      EXPECT_NEAR(predictions->quality->log_loss, loss[moved], 1e-6);
    }
    EXPECT_NEAR(loss[1] / loss[0], 1, 0.005) << workers;
  }
}

}  // namespace
}  // namespace shoal::learn::sparse
