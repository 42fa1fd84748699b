#include "data/datasets/shuffle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "data/datasets/row_reader.h"
#include "data/datasets/test_samples.h"

namespace shoal::data {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Sorted(std::vector<std::string> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<std::string> RecordsOf(const Corpus& corpus, RecordFormat format, RowOptions options) {
  std::vector<std::string> records;
  const auto reader = RowReader::Open(corpus, format, std::move(options));
  if (!reader.ok()) return {reader.status().message()};
  for (Record record; (*reader)->NextRecord(&record).value();) records.emplace_back(record.bytes);
  return records;
}

TEST(Shuffle, GivesEachRecordOfThePartOnce) {
  for (const Sample& sample : Samples()) {
    const TextFiles files(sample.files);
    const auto corpus = OpenAs(files, sample.format);
    ASSERT_TRUE(corpus.ok()) << corpus.status().message();
    for (const PartNumber number : {PartNumber{}, PartNumber{0, 3, 0, 1}, PartNumber{1, 3, 1, 2}}) {
      const auto stored = RowsOf(*corpus, sample.format, {.number = number});
      ASSERT_TRUE(stored.ok());
      std::vector<std::vector<std::string>> orders;
      for (const ShuffleOptions shuffle : {ShuffleOptions{0, 1}, {1, 7}, {2, 1000}, {3, 1000}}) {
        const RowOptions options{.number = number, .shuffle = shuffle};
        const auto rows = RowsOf(*corpus, sample.format, options);
        ASSERT_TRUE(rows.ok()) << rows.status().message();
        EXPECT_EQ(Sorted(*rows), Sorted(*stored)) << NameOf(sample.format) << " " << shuffle.window;
        EXPECT_EQ(RowsOf(*corpus, sample.format, options).value(), *rows);
        orders.push_back(*rows);
        EXPECT_EQ(Sorted(RecordsOf(*corpus, sample.format, options)),
                  Sorted(RecordsOf(*corpus, sample.format, {.number = number})));
      }
      if (stored->size() < 9) continue;
      EXPECT_NE(orders[2], *stored);
      EXPECT_NE(orders[2], orders[3]) << "the seed has no effect";
    }
  }
}

TEST(Shuffle, GoesOnAtEachRecord) {
  for (const Sample& sample : Samples()) {
    const TextFiles files(sample.files);
    const auto corpus = OpenAs(files, sample.format);
    ASSERT_TRUE(corpus.ok());
    for (const uint64_t window : {5, 1000}) {
      RowOptions options{.number = {1, 2, 0, 1}, .shuffle = ShuffleOptions{9, window}};
      const auto all = RowsOf(*corpus, sample.format, options);
      ASSERT_TRUE(all.ok());
      for (uint64_t done = 0; done <= all->size(); ++done) {
        options.from.clear();
        const auto before = RowReader::Open(*corpus, sample.format, options);
        ASSERT_TRUE(before.ok() && RowsOf(before->get(), done).ok());
        EXPECT_EQ((*before)->position().records, done);
        options.from = TextOf((*before)->position());
        const auto after = RowsOf(*corpus, sample.format, options);
        ASSERT_TRUE(after.ok()) << after.status().message();
        ASSERT_EQ(*after, std::vector<std::string>(all->begin() + static_cast<std::ptrdiff_t>(done),
                                                   all->end()))
            << NameOf(sample.format) << " " << options.from;
      }
    }
  }
}

// A window of a twentieth of the data has records of both files and of many places of each.
TEST(Shuffle, AWindowHasRecordsOfManyPieces) {
  constexpr int kLines = 60'000;
  std::vector<std::string> texts(2);
  for (int i = 0; i < 2 * kLines; ++i)
    texts[i / kLines] += std::to_string(1'000'000 + i) + std::string(92, 'x') + "\n";
  const TextFiles files(texts);
  const auto corpus = OpenAs(files, RecordFormat::kText);
  const auto reader = RowReader::Open(*corpus, RecordFormat::kText,
                                      {.shuffle = ShuffleOptions{4, 2 * kLines / 20}});
  ASSERT_TRUE(reader.ok());
  std::vector<int> tenths(20);
  Record record;
  for (int i = 0; i < 6000; ++i) {
    ASSERT_TRUE((*reader)->NextRecord(&record).value());
    ++tenths[static_cast<size_t>((std::stoi(std::string(record.bytes.substr(0, 7))) - 1'000'000) /
                                 (kLines / 10))];
  }
  EXPECT_GE(std::count_if(tenths.begin(), tenths.end(), [](int n) { return n > 0; }), 2);
  EXPECT_GT(std::accumulate(tenths.begin(), tenths.begin() + 10, 0), 0) << "none of the first file";
  EXPECT_GT(std::accumulate(tenths.begin() + 10, tenths.end(), 0), 0) << "none of the second file";
}

TEST(Shuffle, PositionsAreChecked) {
  const TextFiles files({"a\nb\nc\nd\ne\n"});
  const auto corpus = OpenAs(files, RecordFormat::kText);
  const ShuffleOptions shuffle{7, 2};
  const auto reader = RowReader::Open(*corpus, RecordFormat::kText, {.shuffle = shuffle});
  ASSERT_TRUE(reader.ok() && RowsOf(reader->get(), 3).ok());
  const ReadPosition position = (*reader)->position();
  EXPECT_EQ(ParseReadPosition(TextOf(position)).value(), position);
  const auto at = [&](const std::string& from, std::optional<ShuffleOptions> as) {
    return RowReader::Open(*corpus, RecordFormat::kText, {.from = from, .shuffle = as})
        .status()
        .message();
  };
  EXPECT_THAT(at(TextOf(position), ShuffleOptions{8, 2}),
              HasSubstr("position: it is one of the order of seed 7 with windows of 2, expected "
                        "the order of seed 8"));
  EXPECT_THAT(at(TextOf(position), std::nullopt), HasSubstr("expected the stored order"));
  const std::string text = TextOf(position);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    const auto opened =
        RowReader::Open(*corpus, RecordFormat::kText, {.from = damaged, .shuffle = shuffle});
    if (opened.ok()) (void)RowsOf(opened->get());
  }
  ReadPosition behind = position;
  behind.shuffled.given = 3;
  const auto opened =
      RowReader::Open(*corpus, RecordFormat::kText, {.from = TextOf(behind), .shuffle = shuffle});
  ASSERT_TRUE(opened.ok());
  EXPECT_THAT(RowsOf(opened->get()).status().message(), HasSubstr("behind the end of its window"));
}

TEST(Shuffle, MalformedRowsAreCountedWithTheirPlace) {
  const TextFiles files({"a,b\n1,2\n3\n4,5\n"});
  const auto corpus = OpenAs(files, RecordFormat::kCsv);
  const ShuffleOptions shuffle{1, 10};
  EXPECT_THAT(RowsOf(*corpus, RecordFormat::kCsv, {.shuffle = shuffle}).status().message(),
              HasSubstr("text-0:3 (byte 8): it has fewer cells than 2"));
  const auto reader =
      RowReader::Open(*corpus, RecordFormat::kCsv, {.max_bad = 0.5, .shuffle = shuffle});
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(RowsOf(reader->get()).value().size(), 2);
  EXPECT_EQ((*reader)->records().bad(), 1);
}

}  // namespace
}  // namespace shoal::data
