#include "data/examples/column_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "data/examples/examples.h"
#include "data/text/test_text.h"

namespace shoal::data {
namespace {

constexpr int kBits = 31;

TEST(ColumnSummary, IsExactFarFromZeroAndInParts) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(1.6e9, 1e-3);
  ColumnSummary whole;
  ColumnSummary parts[3];
  std::vector<double> values(3000);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = normal(random);
    whole.Add(values[i]);
    parts[i % 3].Add(values[i]);
  }
  ColumnSummary merged;
  for (const ColumnSummary& part : parts) merged.Merge(part);
  long double mean = 0;
  for (const double value : values) mean += value;
  mean /= static_cast<long double>(values.size());
  long double variance = 0;
  for (const double value : values) variance += (value - mean) * (value - mean);
  variance /= static_cast<long double>(values.size());
  for (const ColumnSummary& summary : {whole, merged}) {
    EXPECT_NEAR(summary.mean(), static_cast<double>(mean), 1e-6);
    EXPECT_NEAR(summary.variance() / static_cast<double>(variance), 1, 1e-9);
  }
}

TEST(ColumnSummary, ConstantColumnsHaveNoFactor) {
  ColumnSummary summary;
  for (int i = 0; i < 10; ++i) summary.Add(0.1);
  EXPECT_EQ(ScaleOf(summary).factor, 0);
  EXPECT_EQ(ScaleOf(ColumnSummary()).factor, 0);
  summary.missing = 10;
  EXPECT_EQ(ScaleOf(summary).indicator, CsvIndicator::kMissing);
  summary.missing = 11;
  EXPECT_EQ(ScaleOf(summary).indicator, CsvIndicator::kPresent);
}

TEST(ColumnScaling, NumbersAndMissingCells) {
  const auto parse = [](std::string_view cell) {
    double value = -7;
    return ParseWideNumber(cell, &value) ? value : -7;
  };
  EXPECT_EQ(parse("1.5"), 1.5);
  EXPECT_EQ(parse("+2e3"), 2000);
  EXPECT_EQ(parse("1e-999"), 0);
  for (const char* cell : {"1e999", "1e31", "inf", "-inf"})
    EXPECT_TRUE(std::isinf(parse(cell))) << cell;
  for (const char* cell : {"", "+", "+-1", "1x", "x", "1 2", "0x10"})
    EXPECT_EQ(parse(cell), -7) << cell;
  for (const char* cell : {"", "NA", "nan", "null", "None", "?"}) EXPECT_TRUE(IsMissingCell(cell));
  for (const char* cell : {"-1", "0", "no", "NAN1", "unknown"}) EXPECT_FALSE(IsMissingCell(cell));
}

class ScaledCsv : public ::testing::Test {
 protected:
  // The features of all lines, read with these columns.
  ExampleSet Read(const std::shared_ptr<const CsvColumns>& columns, bool raw) {
    options_.hash_bits = kBits;
    options_.format = ExampleFormat::kCsv;
    options_.csv = columns;
    options_.raw_columns = raw;
    options_.keep_fields = true;
    const Corpus corpus = *files_.Open();
    auto set = ReadExamples(corpus, *corpus.MakeShard(0, 1), options_);
    EXPECT_TRUE(set.ok()) << set.status().message();
    return std::move(*set);
  }
  static std::map<uint32_t, float> Line(const ExampleSet& set, size_t i) {
    std::map<uint32_t, float> line;
    for (size_t k = 0; k < set.FeaturesOf(i).size(); ++k)
      line[set.FeaturesOf(i)[k]] = set.ValuesOf(i)[k];
    return line;
  }
  static uint32_t Number(std::string_view name) { return HashFeature(HashBytes(name), kBits); }

  void SetUp() override {
    files_.Add(
        "label,time,town,rare,same\n"
        "1,1600000001,Rome,,5\n"
        "0,1600000003,Oslo,,5\n"
        "1,NA,Rome,7,5\n"
        "0,1e999,,,5\n"
        "1,1600000002,Rome,,5\n");
  }
  TextFiles files_;
  ExampleOptions options_;
};

TEST_F(ScaledCsv, RawValuesBecomeStandardizedOnes) {
  const auto columns = *CsvColumns::Make(*files_.Open(), {});
  ExampleSet set = Read(columns, true);
  ASSERT_EQ(set.columns.size(), 5u);
  EXPECT_EQ(set.columns[1].numbers, 3u);
  EXPECT_EQ(set.columns[1].missing, 2u);
  EXPECT_EQ(set.columns[1].not_finite, 1u);
  EXPECT_EQ(set.columns[2].texts, 4u);
  EXPECT_EQ(set.columns[3].missing, 4u);
  std::vector<ColumnScale> scales;
  for (const ColumnSummary& column : set.columns) scales.push_back(ScaleOf(column));
  const auto scaled = columns->WithScales(scales, RowScaleOf(set.columns, set.size()));
  ScaleColumns(options_, *scaled, &set);

  const auto root = static_cast<float>(std::sqrt(1.5));  // 1, 3 and 2 have the deviation √(2/3)
  using Features = std::map<uint32_t, float>;
  EXPECT_EQ(Line(set, 0), (Features{{Number("time"), -root}, {Number("town=Rome"), 1}}));
  EXPECT_EQ(Line(set, 1), (Features{{Number("time"), root}, {Number("town=Oslo"), 1}}));
  // The only number of a column is its mean, and its presence says something.
  EXPECT_EQ(Line(set, 2),
            (Features{{Number("time="), 1}, {Number("town=Rome"), 1}, {Number("rare="), 1}}));
  EXPECT_EQ(Line(set, 3), (Features{{Number("time="), 1}, {Number("town="), 1}}));
  EXPECT_EQ(Line(set, 4), (Features{{Number("town=Rome"), 1}}));
  // Squared lengths: 2.5, 2.5, 3, 2, 1.
  EXPECT_FLOAT_EQ(scaled->schema.row_scale, static_cast<float>(1 / std::sqrt(11.0 / 5)));

  // With the scales known from the beginning the result is the same.
  CsvOptions trained;
  trained.trained = scaled->schema;
  const auto known = *CsvColumns::Make(*files_.Open(), trained);
  EXPECT_EQ(known->schema, scaled->schema);
  const ExampleSet again = Read(known, false);
  ASSERT_EQ(again.size(), set.size());
  EXPECT_EQ(again.feature_end, set.feature_end);
  for (size_t i = 0; i < set.size(); ++i) EXPECT_EQ(Line(again, i), Line(set, i)) << i;
}

}  // namespace
}  // namespace shoal::data
