#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "data/datasets/column_batch.h"
#include "data/datasets/part_files.h"
#include "data/datasets/row_reader.h"
#include "data/datasets/row_writer.h"
#include "data/datasets/test_samples.h"
#include "data/formats/tf_example.h"
#include "data/formats/tfrecord.h"
#include "data/parquet/test_parquet.h"
#include "data/text/test_text.h"

namespace shoal::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RowReader, PartsAreDisjointAndWhole) {
  for (const Sample& sample : Samples()) {
    const TextFiles files(sample.files);
    const auto corpus = OpenAs(files, sample.format);
    ASSERT_TRUE(corpus.ok()) << corpus.status().message();
    const auto all = RowsOf(*corpus, sample.format, {});
    ASSERT_TRUE(all.ok()) << all.status().message();
    ASSERT_EQ(all->size(), sample.format == RecordFormat::kParquet ? 6 : kRecords);
    for (const uint64_t parts : {1, 2, 3, 5, 64}) {
      for (const uint64_t of : {1, 2}) {
        std::vector<std::string> joined;
        for (uint64_t i = 0; i < parts * of; ++i) {
          const auto rows = RowsOf(*corpus, sample.format, {.number = {i / of, parts, i % of, of}});
          ASSERT_TRUE(rows.ok()) << rows.status().message();
          joined.insert(joined.end(), rows->begin(), rows->end());
        }
        EXPECT_EQ(joined, *all) << NameOf(sample.format) << " in " << parts << "*" << of;
      }
    }
  }
}

TEST(RowReader, GoesOnAtEachRecord) {
  for (const Sample& sample : Samples()) {
    const TextFiles files(sample.files);
    const auto corpus = OpenAs(files, sample.format);
    ASSERT_TRUE(corpus.ok());
    for (const uint64_t part : {0, 1}) {
      const PartNumber number{part, 2, 0, 1};
      const auto all = RowsOf(*corpus, sample.format, {.number = number});
      ASSERT_TRUE(all.ok());
      for (uint64_t done = 0; done <= all->size(); ++done) {
        const auto before = RowReader::Open(*corpus, sample.format, {.number = number});
        ASSERT_TRUE(before.ok());
        ASSERT_TRUE(RowsOf(before->get(), done).ok());
        const std::string position = TextOf((*before)->position());
        const auto after = RowsOf(*corpus, sample.format, {.number = number, .from = position});
        ASSERT_TRUE(after.ok()) << after.status().message();
        const auto rest =
            std::vector<std::string>(all->begin() + static_cast<std::ptrdiff_t>(done), all->end());
        ASSERT_EQ(*after, rest) << NameOf(sample.format) << " " << position;
      }
    }
  }
}

TEST(RowReader, RowsOfParquetAreDividedEqually) {
  const TextFiles files({BytesOfHex(kParquetVersion1)});
  const auto corpus = OpenAs(files, RecordFormat::kParquet);
  ASSERT_TRUE(corpus.ok());
  for (uint64_t part = 0; part < 3; ++part) {
    const auto rows = RowsOf(*corpus, RecordFormat::kParquet, {.number = {part, 3, 0, 1}});
    ASSERT_TRUE(rows.ok());
    EXPECT_EQ(rows->size(), 1);
  }
}

TEST(RowReader, PositionsAreChecked) {
  const TextFiles files({"a\nb\nc\n"});
  const TextFiles others({"a\nb\nc\nd\n"});
  const auto corpus = OpenAs(files, RecordFormat::kText);
  const auto other = OpenAs(others, RecordFormat::kText);
  const auto reader = RowReader::Open(*corpus, RecordFormat::kText, {});
  ASSERT_TRUE(reader.ok() && RowsOf(reader->get(), 2).ok());
  const ReadPosition position = (*reader)->position();
  EXPECT_EQ(ParseReadPosition(TextOf(position)).value(), position);
  const auto at = [&](const Corpus& data, const std::string& from, PartNumber number = {}) {
    return RowReader::Open(data, RecordFormat::kText, {.number = number, .from = from})
        .status()
        .message();
  };
  EXPECT_THAT(at(*other, TextOf(position)), HasSubstr("it is one of other data"));
  EXPECT_THAT(at(*corpus, TextOf(position), {0, 2, 0, 1}), HasSubstr("it is one of part 0/1"));
  for (const std::string wrong : {"x", "{}", "{\"part\":-1}"})
    EXPECT_THAT(at(*corpus, wrong), HasSubstr("position")) << wrong;
  const std::string text = TextOf(position);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    const auto opened = RowReader::Open(*corpus, RecordFormat::kText, {.from = damaged});
    if (opened.ok()) (void)RowsOf(opened->get());
  }
}

TEST(RowReader, MalformedRowsAreCountedWithTheirPlace) {
  const TextFiles files({"a,b\n1,2\n3\n\"4,5\n6,7,8\n9,10\n"});
  const auto corpus = OpenAs(files, RecordFormat::kCsv);
  const auto strict = RowsOf(*corpus, RecordFormat::kCsv, {});
  EXPECT_THAT(strict.status().message(), HasSubstr("text-0:3 (byte 8): it has fewer cells than 2"));
  const auto reader = RowReader::Open(*corpus, RecordFormat::kCsv, {.max_bad = 0.9});
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(RowsOf(reader->get()).value(),
              ElementsAre("{\"a\":1,\"b\":2}\n", "{\"a\":9,\"b\":10}\n"));
  EXPECT_EQ((*reader)->records().bad(), 3);
  EXPECT_EQ((*reader)->records().good(), 2);
}

struct Frame {
  json::object head;
  std::vector<std::vector<std::string>> buffers;
};

Frame FrameOf(std::string_view bytes) {
  Frame frame;
  uint32_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  frame.head = ParseJsonObject(bytes.substr(4, size)).value();
  bytes.remove_prefix(4 + size);
  for (const json::value& column : frame.head.at("columns").as_array()) {
    auto& buffers = frame.buffers.emplace_back();
    for (const json::value& one : column.at("sizes").as_array()) {
      buffers.emplace_back(bytes.substr(0, static_cast<size_t>(one.as_int64())));
      bytes.remove_prefix(buffers.back().size());
    }
  }
  EXPECT_TRUE(bytes.empty());
  return frame;
}

template <typename T>
std::vector<T> NumbersIn(const std::string& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

TEST(ColumnBatch, HasTypedColumns) {
  const TextFiles files(
      {"{\"i\":1,\"r\":0.5,\"t\":\"x\",\"b\":true,\"l\":[1,2],\"z\":\"7\",\"o\":{\"n\":3}}\n"
       "{\"i\":2,\"b\":null,\"t\":\"\",\"l\":[],\"new\":1}\n"});
  const auto corpus = OpenAs(files, RecordFormat::kJsonLines);
  const auto columns = FindBatchColumns(*corpus, RecordFormat::kJsonLines, {}, {});
  ASSERT_TRUE(columns.ok()) << columns.status().message();
  const auto reader = RowReader::Open(*corpus, RecordFormat::kJsonLines, {});
  ColumnBatch batch(*columns);
  ASSERT_TRUE((*reader)->NextRow(&batch).value());
  ASSERT_TRUE((*reader)->NextRow(&batch).value());
  ASSERT_FALSE((*reader)->NextRow(&batch).value());
  std::string bytes;
  batch.TakeFrame("here", &bytes);
  const Frame frame = FrameOf(bytes);
  EXPECT_EQ(frame.head.at("rows").as_int64(), 2);
  EXPECT_EQ(frame.head.at("position").as_string(), "here");
  std::string types;
  for (const json::value& column : frame.head.at("columns").as_array())
    types += std::string(column.at("name").as_string()) + ":" +
             std::string(column.at("stored").as_string()) + " ";
  EXPECT_EQ(types, "i:int64 r:float64 t:utf8 b:flags l:int64 z:utf8 o.n:float64 new:float64 ");
  EXPECT_THAT(NumbersIn<int64_t>(frame.buffers[0][0]), ElementsAre(1, 2));
  const auto reals = NumbersIn<double>(frame.buffers[1][0]);
  EXPECT_EQ(reals[0], 0.5);
  EXPECT_TRUE(std::isnan(reals[1]));
  EXPECT_EQ(frame.buffers[2][0], std::string("\0\0", 2));
  EXPECT_EQ(frame.buffers[2][2], "x");
  EXPECT_EQ(frame.buffers[3][0], "\1\2");
  EXPECT_THAT(NumbersIn<int64_t>(frame.buffers[4][0]), ElementsAre(1, 2));
  EXPECT_THAT(NumbersIn<uint64_t>(frame.buffers[4][1]), ElementsAre(2, 2));
  EXPECT_EQ(frame.buffers[5][0], std::string("\0\2", 2));
}

TEST(ColumnBatch, AMalformedRowLeavesNothing) {
  std::string text = "n,t\n";
  for (int i = 0; i < 1000; ++i) text += "1,a\n";
  const TextFiles files({text + "x,b\n2,c\n"});
  const auto corpus = OpenAs(files, RecordFormat::kCsv);
  const auto columns = FindBatchColumns(*corpus, RecordFormat::kCsv, {}, {});
  const auto strict = RowReader::Open(*corpus, RecordFormat::kCsv, {});
  ColumnBatch first(*columns);
  Status status;
  for (bool more = true; more && status.ok();) {
    const auto next = (*strict)->NextRow(&first);
    status = next.status();
    more = next.value_or(false);
  }
  EXPECT_THAT(status.message(),
              HasSubstr("text-0:1002 (byte 4004): column n: got x, expected a number"));
  const auto reader = RowReader::Open(*corpus, RecordFormat::kCsv, {.max_bad = 0.5});
  ColumnBatch batch(*columns);
  while ((*reader)->NextRow(&batch).value()) continue;
  std::string bytes;
  batch.TakeFrame("", &bytes);
  const Frame frame = FrameOf(bytes);
  EXPECT_EQ(frame.head.at("rows").as_int64(), 1001);
  EXPECT_EQ(NumbersIn<int64_t>(frame.buffers[0][0]).size(), 1001);
  EXPECT_EQ(NumbersIn<int64_t>(frame.buffers[0][0]).back(), 2);
  EXPECT_EQ(frame.buffers[1][2], std::string(1000, 'a') + "c");
  batch.TakeFrame("", &(bytes = ""));
  EXPECT_EQ(FrameOf(bytes).head.at("rows").as_int64(), 0);
}

TEST(ColumnBatch, ColumnsMayBeTexts) {
  const TextFiles files({"zip,n\n00123,1\n"});
  const auto corpus = OpenAs(files, RecordFormat::kCsv);
  EXPECT_THAT(FindBatchColumns(*corpus, RecordFormat::kCsv, {}, {"zip"}).value(),
              ElementsAre(BatchColumn{"zip", BatchType::kText, false, false},
                          BatchColumn{"n", BatchType::kNumber, true, false}));
  const auto none = [](std::string_view) { return false; };
  EXPECT_THAT(FindBatchColumns(*corpus, RecordFormat::kCsv, none, {}).status().message(),
              HasSubstr("have no column that is wanted"));
}

// The rows of `text` in another format.
Result<std::string> Converted(const std::string& text, RecordFormat from, RecordFormat to) {
  const TextFiles files({text});
  TRY_ASSIGN(const Corpus corpus, OpenAs(files, from));
  TRY_ASSIGN(auto columns, FindBatchColumns(corpus, from, {}, {}));
  TRY_ASSIGN(const auto writer, RowWriter::Make(to, std::move(columns)));
  TRY_ASSIGN(const auto reader, RowReader::Open(corpus, from, {}));
  *writer->text() = writer->Head();
  for (bool more = true; more;) {
    TRY_ASSIGN(more, reader->NextRow(writer.get()));
  }
  return *writer->text();
}

TEST(RowWriter, TablesAndJsonGiveEachOther) {
  const std::string csv = "a,\"b \"\"c\"\"\"\n1,x\n-2.5,\"y, z\"\n,007\n";
  const std::string json =
      "{\"a\":1,\"b \\\"c\\\"\":\"x\"}\n{\"a\":-2.5,\"b \\\"c\\\"\":\"y, z\"}\n"
      "{\"a\":null,\"b \\\"c\\\"\":\"007\"}\n";
  EXPECT_EQ(Converted(csv, RecordFormat::kCsv, RecordFormat::kJsonLines).value(), json);
  EXPECT_EQ(Converted(json, RecordFormat::kJsonLines, RecordFormat::kCsv).value(), csv);
}

TEST(RowWriter, TfRecordsAndBack) {
  const std::string json = "{\"i\":3,\"l\":[0.5,2.0],\"t\":\"x\"}\n{\"i\":4,\"l\":[],\"t\":\"\"}\n";
  const auto records = Converted(json, RecordFormat::kJsonLines, RecordFormat::kTfRecord);
  ASSERT_TRUE(records.ok()) << records.status().message();
  EXPECT_EQ(Converted(*records, RecordFormat::kTfRecord, RecordFormat::kJsonLines).value(), json);
  const std::string mixed = "{\"i\":3}\n";
  std::string late;
  for (int i = 0; i < 1000; ++i) late += mixed;
  EXPECT_THAT(Converted(late + "{\"i\":0.5}\n", RecordFormat::kJsonLines, RecordFormat::kTfRecord)
                  .status()
                  .message(),
              HasSubstr("column i: got 0.5, expected an integer, as in the first records"));
}

TEST(RowWriter, LibsvmAndBack) {
  const std::string svm = "1 3:0.5 7:2\n-1 1:1\n";
  const auto json = Converted(svm, RecordFormat::kLibsvm, RecordFormat::kJsonLines);
  EXPECT_EQ(json.value(),
            "{\"label\":1,\"indices\":[3,7],\"values\":[0.5,2]}\n"
            "{\"label\":-1,\"indices\":[1],\"values\":[1]}\n");
  EXPECT_EQ(Converted(*json, RecordFormat::kJsonLines, RecordFormat::kLibsvm).value(), svm);
}

TEST(RowWriter, TextOfOneColumn) {
  EXPECT_EQ(Converted("{\"t\":\"a\\nb\"}\n{\"t\":null}\n{\"t\":\"c\"}\n", RecordFormat::kJsonLines,
                      RecordFormat::kText)
                .value(),
            "a b\n\nc\n");
  EXPECT_THAT(Converted("a,b\n1,2\n", RecordFormat::kCsv, RecordFormat::kText).status().message(),
              HasSubstr("text is written of one column, and these are 2"));
}

TEST(RowWriter, WhatAFormatHasNotIsRefused) {
  EXPECT_THAT(
      Converted("{\"l\":[1,2]}\n", RecordFormat::kJsonLines, RecordFormat::kCsv).status().message(),
      HasSubstr("column l: it has lists, which csv has not"));
  EXPECT_THAT(Converted("{\"t\":\"a\\nb\"}\n", RecordFormat::kJsonLines, RecordFormat::kCsv)
                  .status()
                  .message(),
              HasSubstr("column t: its text has a line end"));
  EXPECT_THAT(Converted("a\n1\n", RecordFormat::kCsv, RecordFormat::kLibsvm).status().message(),
              HasSubstr("these have no label"));
  EXPECT_THAT(Converted("a\n1\n", RecordFormat::kCsv, RecordFormat::kParquet).status().message(),
              HasSubstr("parquet is not written"));
}

TEST(PartFiles, AMarkTellsWhatIsThere) {
  const auto folder = TempDir::Create("parts").value();
  const std::string path = folder.path().string() + "/";
  ObjectStores stores;
  EXPECT_EQ(ReadDone(&stores, path, "_SUCCESS").status().code(), Code::kNotFound);
  auto file = PartFile::Create(&stores, path, "part-0");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Append("abc").ok());
  file->CountRecord();
  EXPECT_FALSE(std::filesystem::exists(path + "part-0"));
  const auto info = file->Finish();
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(*info, (PartFileInfo{"part-0", 1, 3, Sha256Hex("abc")}));
  ASSERT_TRUE(WriteDone(&stores, path, "_SUCCESS", {"data", {*info}}).ok());
  const auto done = ReadDone(&stores, path, "_SUCCESS");
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->of, "data");
  EXPECT_THAT(done->files, ElementsAre(*info));
  EXPECT_EQ(done->records(), 1);
  ASSERT_TRUE(WriteFileAtomically(path + "_SUCCESS", "{\"of\":1}", 0644, false).ok());
  EXPECT_THAT(ReadDone(&stores, path, "_SUCCESS").status().message(), HasSubstr("is damaged"));
}

}  // namespace
}  // namespace shoal::data
