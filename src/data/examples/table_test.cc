#include "data/examples/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "data/examples/csv.h"
#include "data/formats/tf_example.h"
#include "data/formats/tfrecord.h"
#include "data/text/test_text.h"

namespace shoal::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// One row: age is a number that 32 bits hold, town a text, clicks an integer, label a class. Empty
// texts and NaN are missing.
struct PlainRow {
  float age = 0;
  int64_t clicks = 0;
  std::string town;
  bool label = false;
};

std::vector<PlainRow> RandomRows(size_t count) {
  std::mt19937_64 random(7);
  std::vector<PlainRow> rows;
  for (size_t i = 0; i < count; ++i) {
    PlainRow row;
    row.age = static_cast<float>(random() % 400) / 4;
    row.clicks = static_cast<int64_t>(random() % 50) - 5;
    if (random() % 7 == 0) row.age = NAN;
    if (random() % 5 != 0) row.town = fmt::format("t\"o, {}", random() % 9);
    row.label = random() % 2 == 0;
    rows.push_back(row);
  }
  return rows;
}

std::string Table(const std::vector<PlainRow>& rows, char delimiter) {
  std::string text = fmt::format("age{0}clicks{0}town{0}y\n", delimiter);
  for (const PlainRow& row : rows) {
    std::string town;
    for (const char c : row.town) town += c == '"' ? "\"\"" : std::string(1, c);
    text += fmt::format("{1}{0}{2}{0}\"{3}\"{0}{4}\n", delimiter,
                        std::isnan(row.age) ? "" : fmt::format("{}", row.age), row.clicks, town,
                        row.label ? "yes" : "no");
  }
  return text;
}

// Fields in different orders, escapes, and what is missing as null or not at all.
std::string JsonLines(const std::vector<PlainRow>& rows) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    const PlainRow& row = rows[i];
    std::string town;
    for (const char c : row.town) town += c == '"' ? "\\\"" : std::string(1, c);
    const std::string age = std::isnan(row.age) ? (i % 2 == 0 || i == 1 ? "\"age\": null, " : "")
                                                : fmt::format("\"age\": {}, ", row.age);
    const std::string name = town.empty() ? "null" : '"' + town + '"';
    const std::string label = row.label ? "yes" : "no";
    text += i % 3 < 2 ? fmt::format("{{{}\"clicks\": {}, \"town\": {}, \"y\": \"{}\"}}\n", age,
                                    row.clicks, name, label)
                      : fmt::format("{{\"y\":\"{}\",\"town\":{},{}\"clicks\":{}}}\n", label, name,
                                    age, row.clicks);
  }
  return text;
}

std::string TfRecords(const std::vector<PlainRow>& rows) {
  std::string bytes;
  for (const PlainRow& row : rows) {
    TfExample example;
    if (!std::isnan(row.age)) example["age"] = std::vector<float>{row.age};
    example["clicks"] = std::vector<int64_t>{row.clicks};
    if (!row.town.empty()) example["town"] = std::vector<std::string>{row.town};
    example["y"] = std::vector<std::string>{row.label ? "yes" : "no"};
    AppendTfRecord(EncodeTfExample(example), &bytes);
  }
  return bytes;
}

class Tables : public ::testing::Test {
 protected:
  Result<ExampleSet> Read(ExampleFormat format, std::string_view bytes, uint64_t shards = 1,
                          const CsvOptions& csv = {.label = "y"}, double max_bad = 0,
                          bool raw = true) {
    TextFiles files({std::string(bytes)});
    TRY_ASSIGN(const Corpus corpus,
               Corpus::Open(files.paths(), ObjectContext(), ContentOf(format)));
    options_.hash_bits = 20;
    options_.format = format;
    options_.raw_columns = raw;
    options_.raw_labels = true;
    options_.keep_fields = true;
    options_.max_bad = max_bad;
    TRY_ASSIGN(options_.csv, FindColumns(format, corpus, csv));
    ExampleSet all;
    for (uint64_t i = 0; i < shards; ++i) {
      TRY_ASSIGN(const Shard shard, corpus.MakeShard(i, shards));
      ExampleReader reader(corpus, shard, options_);
      for (;;) {
        TRY_ASSIGN(const bool more, reader.Read(&all));
        if (!more) break;
      }
    }
    return all;
  }

  static void ExpectEqual(const ExampleSet& a, const ExampleSet& b) {
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(a.classes, b.classes);
    EXPECT_EQ(a.columns, b.columns);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a.labels[i], b.labels[i]) << i;
      const auto left = a.FeaturesOf(i);
      const auto right = b.FeaturesOf(i);
      ASSERT_TRUE(std::ranges::equal(left, right)) << i;
      for (size_t k = 0; k < left.size(); ++k) {
        ASSERT_EQ(a.FieldsOf(i)[k], b.FieldsOf(i)[k]);
        const float x = a.ValuesOf(i)[k];
        const float y = b.ValuesOf(i)[k];
        ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << i << " " << k;
      }
    }
  }

  ExampleOptions options_;
};

TEST_F(Tables, EqualTablesOfAnyFormatGiveEqualExamplesInAnyNumberOfShards) {
  const std::vector<PlainRow> rows = RandomRows(2000);
  const auto csv = Read(ExampleFormat::kCsv, Table(rows, ','));
  ASSERT_TRUE(csv.ok()) << csv.status().message();
  ASSERT_EQ(csv->size(), 2000u);
  for (const uint64_t shards : {1, 2, 7, 100}) {
    for (const auto& [format, bytes] : {std::pair(ExampleFormat::kTsv, Table(rows, '\t')),
                                        std::pair(ExampleFormat::kJsonLines, JsonLines(rows)),
                                        std::pair(ExampleFormat::kTfRecord, TfRecords(rows))}) {
      const auto other = Read(format, bytes, shards);
      ASSERT_TRUE(other.ok()) << other.status().message();
      ExpectEqual(*csv, *other);
    }
  }
}

// The features of a row of JSON: name and value.
std::vector<std::string> NamesOf(const ExampleSet& set, size_t i,
                                 const std::vector<std::string>& candidates) {
  std::vector<std::string> names;
  for (const std::string& name : candidates) {
    const uint32_t feature = HashFeature(HashBytes(name), 20);
    const auto features = set.FeaturesOf(i);
    const auto found = std::ranges::find(features, feature);
    if (found == features.end()) continue;
    const float* const values = set.ValuesOf(i);
    names.push_back(
        fmt::format("{}:{}", name, values == nullptr ? 1 : values[found - features.begin()]));
  }
  return names;
}

TEST_F(Tables, NestedFieldsAreDottedAndListsOfTextsHaveSeveralFeatures) {
  const auto set =
      Read(ExampleFormat::kJsonLines,
           R"({"y":1,"user":{"age":30,"home":{"town":"Rome"}},"tags":["a","b"],"v":[1,2]})"
           "\n\n"
           R"({"y":0,"user":{"age":2.5},"ok":true,"v":[3,0],"tags":[]})"
           "\r\n"
           R"({"y":1,"tags":["b","b","\u00e9"],"user":null,"list":[[1],{"x":2}]})",
           1, {.label = "y"}, 0, false);
  ASSERT_TRUE(set.ok()) << set.status().message();
  ASSERT_EQ(set->size(), 3u);
  const std::vector<std::string> names = {
      "user.age", "user.home.town=Rome", "tags=a", "tags=b", "tags=é", "v.0", "v.1", "ok=true"};
  EXPECT_THAT(NamesOf(*set, 0, names), ElementsAre("user.age:30", "user.home.town=Rome:1",
                                                   "tags=a:1", "tags=b:1", "v.0:1", "v.1:2"));
  EXPECT_EQ(set->FeaturesOf(0).size(), 6u);
  EXPECT_THAT(NamesOf(*set, 1, names), ElementsAre("user.age:2.5", "v.0:3", "ok=true:1"));
  EXPECT_THAT(NamesOf(*set, 2, names), ElementsAre("tags=b:2", "tags=é:1"));
}

TEST_F(Tables, NumbersThatAreNamesAreDeclared) {
  const auto set =
      Read(ExampleFormat::kJsonLines, "{\"y\":1,\"zip\":12,\"ids\":[5,6]}\n{\"y\":0,\"zip\":\"x\"}",
           1, {.label = "y", .categorical = "zip, ids"}, 0, false);
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_THAT(NamesOf(*set, 0, {"zip=12", "ids=5", "ids=6"}),
              ElementsAre("zip=12:1", "ids=5:1", "ids=6:1"));
}

TEST_F(Tables, MalformedRowsAreErrorsOrCounted) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"y\":1}\n{\"y\":", ":2: got '{\"y\":', expected a JSON object"},
      {"{\"y\":1}\n{\"y\":1,\"a\":\"\\ud800\"}",
       "expected a JSON object; at byte 12 \\ud800 is half of a character"},
      {"{\"y\":1}\n[1]", ":2: got '[1]', expected a JSON object"},
      {"{\"y\":1}\n{\"y\":1} {}", "expected a JSON object"},
      {"{\"y\":1}\n{\"z\":1}", ":2: got no value in y, expected a label"}};
  for (const auto& [text, expected] : cases) {
    EXPECT_THAT(Read(ExampleFormat::kJsonLines, text).status().message(), HasSubstr(expected));
    const auto tolerated = Read(ExampleFormat::kJsonLines, text, 1, {.label = "y"}, 0.5);
    ASSERT_TRUE(tolerated.ok()) << tolerated.status().message();
    EXPECT_EQ(tolerated->size(), 1u);
    EXPECT_THAT(Read(ExampleFormat::kJsonLines, text, 1, {.label = "y"}, 0.4).status().message(),
                AllOf(HasSubstr("1 of 2 rows"), HasSubstr(" (byte 8): "), Not(HasSubstr(":0 "))));
  }
  const auto csv = Read(ExampleFormat::kCsv, "y,a\n1,2\n3\n0,1\n", 1, {.label = "y"}, 0.4);
  ASSERT_TRUE(csv.ok()) << csv.status().message();
  EXPECT_EQ(csv->size(), 2u);
}

TEST_F(Tables, ARepeatedHeaderIsNoExample) {
  std::string text = "y,a,town\n";
  for (int i = 0; i < 50; ++i) text += fmt::format("{},{},Rome\n", i % 2, i);
  text += "\xef\xbb\xbfy,a,town\r\n";
  for (int i = 0; i < 50; ++i) text += fmt::format("{},{},Rome\n", i % 2, i);
  text += "y,a,town";
  for (const uint64_t shards : {1, 3}) {
    ::testing::internal::CaptureStderr();
    const auto set = Read(ExampleFormat::kCsv, text, shards);
    const std::string told = ::testing::internal::GetCapturedStderr();
    ASSERT_TRUE(set.ok()) << set.status().message();
    EXPECT_EQ(set->size(), 100u);
    EXPECT_THAT(set->classes, ElementsAre("0", "1"));
    EXPECT_THAT(told, HasSubstr("rows that repeat the header are left out: "));
    EXPECT_THAT(told, HasSubstr(":52; if the first line"));
  }
  // A first line of numbers that names columns may well be a row too.
  options_.max_bad = 0;
  const auto numbers =
      Read(ExampleFormat::kCsv, "1,2\n1,2\n", 1, {.label = "1", .header = CsvHeader::kYes});
  ASSERT_TRUE(numbers.ok()) << numbers.status().message();
  EXPECT_EQ(numbers->size(), 1u);
}

TEST_F(Tables, ListsAreNoLongerThanInTheFirstRecords) {
  const auto fault = [&](std::string_view usual, std::string_view last) {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += fmt::format("{{\"y\":1,\"v\":{}}}\n", usual);
    return std::string(
        Read(ExampleFormat::kJsonLines, text + fmt::format("{{\"y\":1,\"v\":{}}}", last))
            .status()
            .message());
  };
  EXPECT_THAT(fault("[1,2]", "[1,2,3]"), HasSubstr(":1001: got '3 values in the list v'"));
  EXPECT_THAT(fault("[1]", "[1,2]"), HasSubstr("got '2 numbers in the list v"));
  EXPECT_EQ(fault("[1,2]", "[3]"), "");
}

TEST_F(Tables, DamagedTfRecordsAreCountedButNotTheirLengths) {
  const std::string bytes = TfRecords(RandomRows(100));
  std::string damaged = bytes;
  damaged[20] = static_cast<char>(damaged[20] ^ 1);
  EXPECT_THAT(Read(ExampleFormat::kTfRecord, damaged).status().message(),
              HasSubstr("its checksum is wrong"));
  EXPECT_EQ(Read(ExampleFormat::kTfRecord, damaged, 3, {.label = "y"}, 0.1)->size(), 99u);
  damaged = bytes;
  damaged[0] = static_cast<char>(damaged[0] ^ 1);
  EXPECT_EQ(Read(ExampleFormat::kTfRecord, damaged, 1, {.label = "y"}, 1).status().code(),
            Code::kInvalidArgument);  // already where the columns are found
  EXPECT_THAT(Read(ExampleFormat::kTfRecord, bytes.substr(0, bytes.size() - 3)).status().message(),
              HasSubstr("ends inside a record"));
  EXPECT_THAT(Read(ExampleFormat::kTfRecord, bytes, 1, {}).status().message(),
              HasSubstr("name one of age, clicks, town, y"));
}

TEST_F(Tables, ATrainedTableIsReadInAnyFormat) {
  const std::vector<PlainRow> rows = RandomRows(300);
  TextFiles files({Table(rows, ',')});
  const auto columns = *CsvColumns::Make(*files.Open(), {.label = "y"});
  CsvOptions as_trained;
  as_trained.trained = columns->schema;
  as_trained.label_needed = false;
  const auto set = Read(ExampleFormat::kJsonLines, "{\"town\":\"x\"}\n{\"age\":3,\"new\":1}", 1,
                        as_trained, 0, false);
  EXPECT_THAT(options_.csv->absent, ElementsAre("clicks", "y"));
  EXPECT_EQ(options_.csv->schema.names, columns->schema.names);
  const auto none = Read(ExampleFormat::kJsonLines, "{\"street\":\"x\"}", 1, as_trained);
  EXPECT_THAT(none.status().message(), HasSubstr("names none of the columns"));
}

}  // namespace
}  // namespace shoal::data
