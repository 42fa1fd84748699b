#include "data/examples/csv.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "data/examples/examples.h"
#include "data/text/test_text.h"

namespace shoal::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Cells(std::string_view line, char delimiter = ',') {
  std::vector<std::string> cells;
  std::string room;
  const char* const end = line.data() + line.size();
  for (const char* at = line.data(); at <= end;) {
    std::string_view cell;
    if (!NextCell(&at, end, delimiter, &room, &cell)) return {"unclosed"};
    cells.emplace_back(cell);
  }
  return cells;
}

TEST(Csv, CellsAreUnquotedAndTrimmed) {
  EXPECT_THAT(Cells("a,b,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Cells(""), ElementsAre(""));
  EXPECT_THAT(Cells(",,"), ElementsAre("", "", ""));
  EXPECT_THAT(Cells(" a b , c "), ElementsAre("a b", "c"));
  EXPECT_THAT(Cells(R"("x, y" ,"say ""so""","")"), ElementsAre("x, y", "say \"so\"", ""));
  EXPECT_THAT(Cells("a\t \tb", '\t'), ElementsAre("a", "", "b"));
  EXPECT_THAT(Cells(R"(a,"b)"), ElementsAre("unclosed"));
  EXPECT_THAT(Cells(R"("a"b,c)"), ElementsAre("unclosed"));
}

std::string FirstLineError(std::string_view line, const CsvOptions& options) {
  return CsvColumns::FromFirstLine(line, options).status().message();
}

TEST(Csv, ColumnsComeFromTheFirstLine) {
  const auto named = *CsvColumns::FromFirstLine("label,age,town\r", {});
  EXPECT_EQ(named->header, "label,age,town");
  EXPECT_EQ(named->label, 0u);
  EXPECT_EQ(named->columns[1].feature, HashBytes("age"));
  const auto plain = *CsvColumns::FromFirstLine("1,30,Rome", {});
  EXPECT_EQ(plain->header, "");
  EXPECT_EQ(plain->columns[2].feature, HashBytes("3"));
  CsvOptions options;
  options.label = "town";
  options.categorical = " age ,1";
  const auto chosen = *CsvColumns::FromFirstLine("\xef\xbb\xbflabel,age,town", options);
  EXPECT_EQ(chosen->label, 2u);
  EXPECT_TRUE(chosen->columns[0].categorical && chosen->columns[1].categorical);
  options.label = "height";
  EXPECT_EQ(FirstLineError("label,age,town", options),
            "label: there is no column height; the columns are label, age, town");
  options.label_needed = false;
  EXPECT_EQ((*CsvColumns::FromFirstLine("label,age,town", options))->label, CsvColumns::kNone);
  options.categorical = "4";
  EXPECT_THAT(FirstLineError("label,age,town", options), HasSubstr("no column 4"));
  EXPECT_EQ(FirstLineError("a,b,a", {}), "two columns are called 'a'");
}

// What the columns of `line` are to a model that was trained on `trained`.
Result<std::shared_ptr<const CsvColumns>> AsTrained(std::string_view trained, std::string_view line,
                                                    CsvOptions options = {}) {
  TRY_ASSIGN(const auto columns, CsvColumns::FromFirstLine(trained, options));
  CsvOptions later;
  later.label_needed = false;
  later.trained = columns->schema;
  return CsvColumns::FromFirstLine(line, later);
}

TEST(Csv, OtherFilesAreReadAsTheTrainingData) {
  // By name, in any order, with the label or without it.
  EXPECT_EQ((*AsTrained("label,age,town", "age,town"))->label, CsvColumns::kNone);
  const auto moved = *AsTrained("label,age,town", "town,label,age");
  EXPECT_EQ(moved->label, 1u);
  EXPECT_EQ(moved->columns[2].feature, HashBytes("age"));
  EXPECT_THAT(AsTrained("label,age,town", "Rome,Paris").status().message(),
              HasSubstr("names none of the columns that the model was trained on"));

  // By place where no line names them.
  for (const char* trained : {"label,age,town", "1,30,Rome"}) {
    const bool named = trained[0] == 'l';
    const auto whole = *AsTrained(trained, "0,31,Paris");
    EXPECT_EQ(whole->label, 0u);
    EXPECT_EQ(whole->columns[1].feature, HashBytes(named ? "age" : "2"));
    const auto without = *AsTrained(trained, "31,Paris");
    EXPECT_EQ(without->label, CsvColumns::kNone);
    EXPECT_EQ(without->columns[0].feature, HashBytes(named ? "age" : "2"));
    EXPECT_EQ(AsTrained(trained, "31").status().message(),
              "the first line has 1 cells, expected 3 as in the data that the model was trained "
              "on, or 2 without the label");
  }
  // Of text alone, which would be taken for a header.
  EXPECT_EQ((*AsTrained("0,Rome", "Paris"))->header, "");

  CsvOptions options;
  options.label = "3";
  options.categorical = "4";
  const auto categorical = *AsTrained("1,2,0,7", "1,2,7", options);
  EXPECT_EQ(categorical->columns[2].feature, HashBytes("4"));
  EXPECT_TRUE(categorical->columns[2].categorical);
  EXPECT_FALSE(categorical->columns[1].categorical);
}

Result<ExampleSet> Read(const TextFiles& files, const CsvOptions& csv, int bits = 20,
                        uint64_t index = 0, uint64_t count = 1) {
  TRY_ASSIGN(const Corpus corpus, files.Open());
  ExampleOptions options;
  options.hash_bits = bits;
  options.format = ExampleFormat::kCsv;
  TRY_ASSIGN(options.csv, CsvColumns::Make(corpus, csv));
  TRY_ASSIGN(const Shard shard, corpus.MakeShard(index, count));
  return ReadExamples(corpus, shard, options);
}

std::map<uint32_t, float> FeaturesOf(const ExampleSet& set, size_t i) {
  std::map<uint32_t, float> features;
  for (size_t k = 0; k < set.FeaturesOf(i).size(); ++k)
    features[set.FeaturesOf(i)[k]] = set.ValuesOf(i) == nullptr ? 1 : set.ValuesOf(i)[k];
  return features;
}

TEST(Csv, NumbersAreValuesAndTextIsClasses) {
  TextFiles files;
  files.Add("label,age,town\n1,30.5,Rome\n-1,,\"Rome\"\n\n0,x,\n1,0,7\n");
  const auto set = Read(files, {});
  ASSERT_TRUE(set.ok()) << set.status().message();
  ASSERT_EQ(set->size(), 4u);
  const auto hash = [](std::string_view text) { return HashFeature(HashBytes(text), 20); };
  EXPECT_EQ(FeaturesOf(*set, 0),
            (std::map<uint32_t, float>{{hash("age"), 30.5f}, {hash("town=Rome"), 1.0f}}));
  EXPECT_EQ(FeaturesOf(*set, 1), (std::map<uint32_t, float>{{hash("town=Rome"), 1.0f}}));
  EXPECT_EQ(FeaturesOf(*set, 2), (std::map<uint32_t, float>{{hash("age=x"), 1.0f}}));
  EXPECT_EQ(FeaturesOf(*set, 3), (std::map<uint32_t, float>{{hash("town"), 7.0f}}));
  EXPECT_THAT(set->labels.span(), ElementsAre(1, 0, 0, 1));
  CsvOptions options;
  options.categorical = "town";
  EXPECT_EQ(FeaturesOf(*Read(files, options), 3),
            (std::map<uint32_t, float>{{hash("town=7"), 1.0f}}));
}

TEST(Csv, EveryLineIsInExactlyOneShardAndHeadersInNone) {
  std::mt19937_64 random(4);
  TextFiles files;
  size_t lines = 0;
  for (int file = 0; file < 3; ++file) {
    std::string text = "label;a;b\r\n";
    for (int i = 0; i < 50; ++i, ++lines)
      text += fmt::format("{};{};\"t;{}\"\r\n", random() % 2, random() % 9, random() % 5);
    files.Add(file == 1 ? Gzip(text) : text);
  }
  CsvOptions options;
  options.delimiter = ';';
  const auto whole = Read(files, options);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->size(), lines);
  for (const uint64_t count : {2u, 7u, 61u}) {
    size_t at = 0;
    for (uint64_t index = 0; index < count; ++index) {
      const auto part = Read(files, options, 20, index, count);
      ASSERT_TRUE(part.ok()) << part.status().message();
      for (size_t i = 0; i < part->size(); ++i, ++at) {
        ASSERT_EQ(part->labels[i], whole->labels[at]);
        ASSERT_EQ(FeaturesOf(*part, i), FeaturesOf(*whole, at));
      }
    }
    EXPECT_EQ(at, lines);
  }
}

TEST(Csv, ErrorsNameTheLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"label,a\n1,2\n7,3\n", ":3: got '7,3', expected a label: -1, 0 or 1"},
      {"label,a\n1,2,3\n", ":2: got '3', expected 2 columns in every line, as in the first"},
      {"label,a\n1\n", ":2: got '1', expected 2 columns in every line, as in the first"},
      {"label,a\n1,\"x\n", "expected a quoted cell that ends before its delimiter"}};
  for (const auto& [text, expected] : cases) {
    TextFiles files;
    files.Add(text);
    EXPECT_THAT(Read(files, {}).status().message(), HasSubstr(expected));
  }
  TextFiles files;
  files.Add("label,a\n1,2\n");
  files.Add("label,b\n1,2\n");
  EXPECT_THAT(Read(files, {}).status().message(),
              HasSubstr(":1: got 'label,b', expected the same columns in every file: label,a"));
}

Result<ExampleSet> ReadLibffm(const std::string& text, ExampleOptions options = {}) {
  TextFiles files;
  files.Add(text);
  const Corpus corpus = *files.Open();
  options.format = ExampleFormat::kLibffm;
  return ReadExamples(corpus, *corpus.MakeShard(0, 1), options);
}

TEST(Libffm, FieldsAreReadAndLeftOut) {
  const auto set = ReadLibffm("1 0:7:1 1:3:0.5 # c\n-1 2:9:2\n");
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ(FeaturesOf(*set, 0), (std::map<uint32_t, float>{{3, 0.5f}, {7, 1.0f}}));
  EXPECT_EQ(FeaturesOf(*set, 1), (std::map<uint32_t, float>{{9, 2.0f}}));
  for (const char* bad : {"1 0:7\n", "1 0:7:x\n", "1 :7:1\n", "1 0::1\n"}) {
    EXPECT_THAT(ReadLibffm(bad).status().message(), HasSubstr("expected FIELD:NUMBER:VALUE"));
  }
}

// Of example i, feature → field.
std::map<uint32_t, uint32_t> FieldsOf(const ExampleSet& set, size_t i) {
  std::map<uint32_t, uint32_t> fields;
  for (size_t k = 0; k < set.FeaturesOf(i).size(); ++k)
    fields[set.FeaturesOf(i)[k]] = set.FieldsOf(i)[k];
  return fields;
}

TEST(Libffm, FieldsAreKeptOnRequest) {
  const char* text = "1 0:7:1 300:3:0.5 12:7:2\n-1 2:9:2\n";
  ExampleOptions options;
  options.keep_fields = true;
  const auto set = ReadLibffm(text, options);
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ(set->field_end, 301u);
  EXPECT_EQ(FieldsOf(*set, 0), (std::map<uint32_t, uint32_t>{{3, 300}, {7, 0}}));
  EXPECT_EQ(FeaturesOf(*set, 0), (std::map<uint32_t, float>{{3, 0.5f}, {7, 3.0f}}));
  EXPECT_EQ(FieldsOf(*set, 1), (std::map<uint32_t, uint32_t>{{9, 2}}));
  options.fields = 8;
  const auto folded = ReadLibffm(text, options);
  EXPECT_EQ(FieldsOf(*folded, 0), (std::map<uint32_t, uint32_t>{{3, 300 % 8}, {7, 0}}));
  EXPECT_EQ(folded->field_end, 5u);
  const char* high = "1 65535:1:1\n1 65536:1:1\n";
  EXPECT_TRUE(ReadLibffm(high, options).ok());
  options.fields = 0;
  EXPECT_THAT(ReadLibffm(high, options).status().message(),
              HasSubstr(":2: got '65536:1:1', expected a field below 65536"));
}

TEST(Csv, AColumnIsAFieldInAnyOrder) {
  const auto read = [](const char* text) {
    TextFiles files;
    files.Add(text);
    const Corpus corpus = *files.Open();
    CsvOptions csv;
    csv.label = "y";
    csv.label_needed = false;
    ExampleOptions options;
    options.format = ExampleFormat::kCsv;
    options.hash_bits = 20;
    options.keep_fields = true;
    options.csv = *CsvColumns::Make(corpus, csv);
    return FieldsOf(*ReadExamples(corpus, *corpus.MakeShard(0, 1), options), 0);
  };
  const auto fields = read("y,a,b,c\n1,red,2,blue\n");
  EXPECT_EQ(fields.size(), 3u);
  std::set<uint32_t> different;
  for (const auto& [feature, field] : fields) different.insert(field);
  EXPECT_EQ(different, (std::set<uint32_t>{0, 1, 2}));
  EXPECT_EQ(read("c,a,b\nblue,red,2\n"), fields);
}

}  // namespace
}  // namespace shoal::data
