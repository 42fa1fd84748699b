#include "data/formats/record_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "data/datasets/schema.h"
#include "data/formats/tf_example.h"
#include "data/formats/tfrecord.h"

namespace shoal::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class Records : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) {
    const auto path = dir_.path() / name;
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    return path.string();
  }
  std::unique_ptr<RecordReader> Open(const std::vector<std::string>& paths, RecordFormat format,
                                     double max_bad = 0) {
    auto corpus = Corpus::Open(paths, ObjectContext(), ContentOf(format));
    EXPECT_TRUE(corpus.ok()) << corpus.status().message();
    return std::make_unique<RecordReader>(*corpus, format, RecordOptions{.max_bad = max_bad});
  }
  // The records until the end; the error in `error`.
  std::vector<std::string> All(RecordReader* reader, Status* error = nullptr) {
    std::vector<std::string> all;
    Record record;
    for (;;) {
      const auto more = reader->Next(&record);
      if (error != nullptr) *error = more.status();
      if (error == nullptr) {
        EXPECT_TRUE(more.ok()) << more.status().message();
      }
      if (!more.value_or(false)) return all;
      all.emplace_back(record.bytes);
      places_.emplace_back(record.number, record.offset);
    }
  }
  const TempDir dir_ = TempDir::Create().value();
  std::vector<std::pair<uint64_t, uint64_t>> places_;
};

TEST_F(Records, OfLinesHaveTheirPlaces) {
  const auto reader =
      Open({Write("a.txt", "one\r\n\ntwo\nthree"), Write("b.txt", "four\n")}, RecordFormat::kText);
  EXPECT_THAT(All(reader.get()), ElementsAre("one", "two", "three", "four"));
  EXPECT_THAT(places_,
              ElementsAre(std::pair(1, 0), std::pair(3, 6), std::pair(4, 10), std::pair(1, 0)));
  EXPECT_EQ(reader->bytes_read(), 20u);
}

TEST_F(Records, AMalformedOneIsAnErrorWithItsPlace) {
  const auto reader =
      Open({Write("a.jsonl", "{\"a\":1}\n{\"a\":\n{\"a\":3}\n")}, RecordFormat::kJsonLines);
  Status error;
  EXPECT_THAT(All(reader.get(), &error), SizeIs(1));
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("a.jsonl:2 (byte 8): it is no JSON object"));
}

TEST_F(Records, AShareOfMalformedOnesIsCounted) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += i % 100 == 7 ? "[1]\n" : "{\"a\":1}\n";
  const auto path = Write("a.jsonl", text);
  const auto reader = Open({path}, RecordFormat::kJsonLines, 0.02);
  EXPECT_THAT(All(reader.get()), SizeIs(990));
  EXPECT_EQ(reader->bad(), 10u);
  EXPECT_THAT(reader->first_bad(), SizeIs(10));
  EXPECT_EQ(reader->first_bad().front().number, 8u);
  const auto strict = Open({path}, RecordFormat::kJsonLines, 0.005);
  Status error;
  All(strict.get(), &error);
  EXPECT_THAT(error.message(), HasSubstr("10 of 1000 records are malformed, the first: "));
}

TEST_F(Records, OfTablesHaveAsManyCellsAsTheFirstLine) {
  const auto reader = Open({Write("a.csv", "x,\"y, z\"\n1,\"a,b\"\n1,2,3\n1,\"2\n"),
                            Write("b.csv", "x,\"y, z\"\n5,6\n")},
                           RecordFormat::kCsv, 1);
  EXPECT_THAT(All(reader.get()), ElementsAre("1,\"a,b\"", "5,6"));
  EXPECT_THAT(reader->columns(), ElementsAre("x", "y, z"));
  ASSERT_THAT(reader->first_bad(), SizeIs(2));
  EXPECT_THAT(reader->first_bad()[0].text(), HasSubstr("a.csv:3 (byte 17): it has 3 cells"));
  EXPECT_THAT(reader->first_bad()[1].text(), HasSubstr("a quote is not closed"));
}

TEST_F(Records, ARepeatedHeaderIsNoRecord) {
  const auto reader =
      Open({Write("a.csv", "x,y\n1,a\nx,y\r\n2,b\nx,z\nx,y\n")}, RecordFormat::kCsv);
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(All(reader.get()), ElementsAre("1,a", "2,b", "x,z"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("lines that repeat the header are left out: 2, the first: " +
                        (dir_.path() / "a.csv").string() + " (byte 8)"));
  // The next pass over the same file does not say it again.
  const auto again = Open({dir_.path() / "a.csv"}, RecordFormat::kCsv);
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(All(again.get()), SizeIs(3));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  // A line of numbers may well come twice.
  EXPECT_THAT(All(Open({Write("b.csv", "1,2\n1,2\n")}, RecordFormat::kCsv).get()),
              ElementsAre("1,2"));
}

TEST_F(Records, HalfACharacterIsNamed) {
  for (const char* text :
       {"{\"a\":\"\\\\\\ud800\"}", "{\"a\":\"\\\\\\udc00\"}", "{\"a\":\"\\\\\\ud800\\u0041\"}"}) {
    const auto reader = Open({Write("a.jsonl", text)}, RecordFormat::kJsonLines);
    Status error;
    EXPECT_THAT(All(reader.get(), &error), SizeIs(0));
    EXPECT_THAT(error.message(), HasSubstr("it is no JSON: at byte 8 \\ud"));
    EXPECT_THAT(error.message(), HasSubstr("is half of a character, without the other half"));
  }
  const auto whole = Write("b.jsonl", "{\"a\":\"\\ud83d\\ude00\\\\ud800\"}");
  EXPECT_THAT(All(Open({whole}, RecordFormat::kJsonLines).get()), SizeIs(1));
}

TEST_F(Records, AnEndlessLineIsPassedOver) {
  const auto reader =
      Open({Write("a.txt", "one\n" + std::string(kMaxRecord + (2 << 20), 'x') + "\ntwo\n")},
           RecordFormat::kText, 1);
  EXPECT_THAT(All(reader.get()), ElementsAre("one", "two"));
  EXPECT_THAT(reader->first_bad().front().text(),
              HasSubstr("a.txt:2 (byte 4): the line is longer"));
}

TEST_F(Records, OfTensorFlowAreChecked) {
  std::string bytes;
  for (const char* record : {"first", "", "third"}) AppendTfRecord(record, &bytes);
  const auto whole = Open({Write("a.tfrecord", bytes)}, RecordFormat::kTfRecord);
  EXPECT_THAT(All(whole.get()), ElementsAre("first", "", "third"));
  EXPECT_THAT(places_, ElementsAre(std::pair(1, 0), std::pair(2, 21), std::pair(3, 37)));

  std::string damaged = bytes;
  damaged[12] = 'F';
  const auto counted = Open({Write("b.tfrecord", damaged)}, RecordFormat::kTfRecord, 1);
  EXPECT_THAT(All(counted.get()), ElementsAre("", "third"));
  EXPECT_THAT(counted->first_bad().front().text(), HasSubstr("its checksum is wrong"));
}

TEST_F(Records, EveryTruncationAndDamageOfTensorFlowsFramingIsAnError) {
  std::string bytes;
  for (const char* record : {"first", "second"}) AppendTfRecord(record, &bytes);
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size == 21) continue;  // after the first record
    const auto reader = Open({Write("a.tfrecord", bytes.substr(0, size))}, RecordFormat::kTfRecord);
    Status error;
    All(reader.get(), &error);
    EXPECT_EQ(error.code(), Code::kDataLoss) << size;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    const auto reader = Open({Write("a.tfrecord", damaged)}, RecordFormat::kTfRecord);
    Status error;
    All(reader.get(), &error);
    EXPECT_FALSE(error.ok()) << at;
  }
}

TEST_F(Records, SchemasAreInferred) {
  const auto schema = [&](const std::string& path, RecordFormat format) {
    const auto reader = Open({path}, format);
    const auto inferred = InferSchema(reader.get(), format, 100);
    EXPECT_TRUE(inferred.ok()) << inferred.status().message();
    std::vector<std::string> columns;
    for (const SchemaColumn& column : inferred->columns)
      columns.push_back(column.name + " " + std::string(NameOf(column.type)) + " " +
                        std::to_string(column.missing));
    return columns;
  };
  EXPECT_THAT(
      schema(Write("a.csv", "id,x,name,none\n1,2,a,\n2,2.5,3,\n3,,b,\n"), RecordFormat::kCsv),
      ElementsAre("id integer 0", "x float 1", "name text 0", "none null 3"));
  EXPECT_THAT(schema(Write("a.jsonl",
                           "{\"a\":1,\"b\":true,\"c\":[1]}\n{\"a\":2.5,\"c\":null,\"d\":\"x\"}\n"),
                     RecordFormat::kJsonLines),
              ElementsAre("a float 0", "b bool 1", "c nested 1", "d text 1"));
  std::string records;
  AppendTfRecord(EncodeTfExample({{"f", std::vector<float>{1}}, {"s", std::vector<std::string>{}}}),
                 &records);
  AppendTfRecord(EncodeTfExample({{"i", std::vector<int64_t>{1}}}), &records);
  EXPECT_THAT(schema(Write("a.tfrecord", records), RecordFormat::kTfRecord),
              ElementsAre("f list of floats 1", "s list of bytes 1", "i list of integers 1"));
}

TEST(RecordFormats, AreKnownByNameAndEnding) {
  EXPECT_EQ(FormatOfPath("s3://b/a.csv.gz"), RecordFormat::kCsv);
  EXPECT_EQ(FormatOfPath("https://h/a.jsonl?x=.csv"), RecordFormat::kJsonLines);
  EXPECT_EQ(FormatOfPath("a.tfrecords"), RecordFormat::kTfRecord);
  EXPECT_EQ(FormatOfPath("text8"), RecordFormat::kText);
  EXPECT_EQ(ParseRecordFormat("tsv").value(), RecordFormat::kTsv);
  EXPECT_THAT(
      ParseRecordFormat("xml").status().message(),
      HasSubstr("got xml, expected one of text, csv, tsv, libsvm, libffm, jsonl, tfrecord"));
}

}  // namespace
}  // namespace shoal::data
