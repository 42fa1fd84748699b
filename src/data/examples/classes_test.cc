#include "data/examples/classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "data/examples/examples.h"
#include "data/text/test_text.h"

namespace shoal::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Classes, NumbersHaveOneName) {
  for (const char* cell : {"1", "1.0", "+1", "1e0"}) EXPECT_EQ(ClassName(cell), "1") << cell;
  EXPECT_EQ(ClassName("-0"), "0");
  EXPECT_EQ(ClassName(">50K"), ">50K");
  EXPECT_EQ(ClassName("inf"), "inf");
}

TEST(Classes, TheGreaterIsLabelOneUnlessAnotherIsNamed) {
  const auto order = [](std::vector<std::string> names, std::string_view positive = "") {
    return *OrderClasses(std::move(names), positive);
  };
  EXPECT_THAT(order({">50K", "<=50K", ">50K"}), ElementsAre("<=50K", ">50K"));
  EXPECT_THAT(order({"10", "9"}), ElementsAre("9", "10"));
  EXPECT_THAT(order({"yes", "2"}), ElementsAre("2", "yes"));
  EXPECT_THAT(order({"1", "2"}), ElementsAre("1", "2"));
  EXPECT_THAT(order({"1", "2"}, "1.0"), ElementsAre("2", "1"));
  for (const auto& own : {std::vector<std::string>{"0", "1"}, {"-1", "1"}, {"-1", "0", "1"}})
    EXPECT_THAT(order(own), IsEmpty());
  EXPECT_THAT(order({"0", "1"}, "1"), IsEmpty());
  EXPECT_THAT(order({"0", "1"}, "0"), ElementsAre("1", "0"));
  EXPECT_FALSE(OrderClasses({"1"}, "").ok());
  EXPECT_THAT(OrderManyClasses({"b", "10", "9", "b"})->front(), "9");
  EXPECT_FALSE(OrderManyClasses({"b", "b"}).ok());
  EXPECT_THAT(OrderClasses({"a"}, "").status().message(),
              HasSubstr("got 1 class, expected two: a"));
  EXPECT_THAT(OrderClasses({"c", "a", "b"}, "").status().message(),
              HasSubstr("got 3 classes, expected two: a, b, c"));
  EXPECT_THAT(OrderClasses({"a", "b"}, "x").status().message(),
              HasSubstr("positive: got x, expected one of the label's classes: a, b"));
}

Result<ExampleSet> Read(const TextFiles& files, const CsvOptions& csv, bool raw) {
  TRY_ASSIGN(const Corpus corpus, files.Open());
  ExampleOptions options;
  options.hash_bits = 20;
  options.format = ExampleFormat::kCsv;
  options.raw_labels = raw;
  TRY_ASSIGN(options.csv, CsvColumns::Make(corpus, csv));
  TRY_ASSIGN(const Shard shard, corpus.MakeShard(0, 1));
  return ReadExamples(corpus, shard, options);
}

TEST(Classes, AreReadByNameAndKnownAfterwards) {
  TextFiles files;
  files.Add("income,age\n>50K,1\n\"<=50K\",2\n >50K ,3\n");
  ExampleSet set = *Read(files, {}, true);
  EXPECT_THAT(set.classes, ElementsAre(">50K", "<=50K"));
  SetLabels({"<=50K", ">50K"}, &set);
  EXPECT_THAT(set.labels.span(), ElementsAre(1, 0, 1));
  CsvOptions known;
  known.trained = CsvSchema{true, "income", {"income", "age"}, {}};
  known.trained->classes = {"<=50K", ">50K"};
  EXPECT_THAT(Read(files, known, false)->labels.span(), ElementsAre(1, 0, 1));
  known.trained->classes = {">50K", "more"};
  EXPECT_THAT(Read(files, known, false).status().message(),
              HasSubstr(":3: got '\"<=50K\",2', expected a label: >50K or more"));
}

TEST(Classes, MoreThanTwoAreRefusedWhereTheyAreSeen) {
  TextFiles files;
  files.Add("label,age\na,1\nb,1\nc,1\n d,1\n");
  EXPECT_THAT(Read(files, {}, true).status().message(),
              HasSubstr(":5: got 'd,1', expected a label of one of two classes; the lines before "
                        "have a, b, c"));
  TextFiles empty;
  empty.Add("label,age\n,1\n");
  EXPECT_THAT(Read(empty, {}, true).status().message(),
              HasSubstr(":2: got no value in label, expected a label"));
}

}  // namespace
}  // namespace shoal::data
