#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/formats/record_reader.h"
#include "data/parquet/codecs.h"
#include "data/parquet/encodings.h"
#include "data/parquet/test_parquet.h"
#include "data/text/test_text.h"

namespace shoal::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<std::vector<std::string>> RowsOf(std::string_view bytes) {
  TextFiles files({std::string(bytes)});
  TRY_ASSIGN(Corpus corpus, Corpus::Open(files.paths(), ObjectContext(), Content::kBytes));
  RecordReader reader(corpus, RecordFormat::kParquet);
  std::vector<std::string> rows;
  Record record;
  for (;;) {
    TRY_ASSIGN(const bool more, reader.Next(&record));
    if (!more) return rows;
    rows.emplace_back(record.bytes);
  }
}

TEST(Parquet, RowsOfBothVersionsOfPages) {
  for (const std::string_view hex : {kParquetVersion1, kParquetVersion2}) {
    const auto rows = RowsOf(BytesOfHex(hex));
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    EXPECT_THAT(*rows, ElementsAre(R"({"a":1.5,"b":1,"c":"x","l":["p","q"],"f":true,"s.n":1})",
                                   R"({"a":null,"b":2,"c":"é","l":[],"f":false,"s.n":null})",
                                   R"({"a":3.0,"b":-3,"c":"x","l":[],"f":null,"s.n":3})"));
  }
}

// Whatever the damage, an error or rows; no crash.
TEST(Parquet, EveryCutAndEveryDamagedByteIsSurvived) {
  for (const std::string_view hex : {kParquetVersion1, kParquetVersion2}) {
    const std::string bytes = BytesOfHex(hex);
    for (size_t size = 1; size < bytes.size(); size += 7)
      EXPECT_FALSE(RowsOf(bytes.substr(0, size)).ok()) << size;
    for (size_t i = 0; i < bytes.size(); ++i) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
      (void)RowsOf(damaged);
    }
  }
}

TEST(Parquet, LyingFootersAreRefusedWithTheFile) {
  std::string bytes = BytesOfHex(kParquetVersion1);
  EXPECT_THAT(RowsOf(bytes.substr(0, bytes.size() - 1)).status().message(),
              HasSubstr("does not end with PAR1"));
  bytes[bytes.size() - 5] = '\x7f';
  EXPECT_THAT(RowsOf(bytes).status().message(), HasSubstr("does not fit into the file"));
  EXPECT_THAT(RowsOf("PAR1").status().message(), HasSubstr("too short"));
}

TEST(Parquet, Codecs) {
  std::string out(10, '\0');
  EXPECT_TRUE(UnpackSnappy(std::string_view("\x0a\x04"
                                            "ab"
                                            "\x1e\x02\x00",
                                            7),
                           &out)
                  .ok());
  EXPECT_EQ(out, "ababababab");
  EXPECT_FALSE(UnpackSnappy(std::string_view("\x0a\x04"
                                             "ab"
                                             "\x1e\x09\x00",
                                             7),
                            &out)
                   .ok());
  EXPECT_TRUE(UnpackLz4Block(std::string_view("\x24"
                                              "ab"
                                              "\x02\x00",
                                              5),
                             &out)
                  .ok());
  EXPECT_EQ(out, "ababababab");
  EXPECT_FALSE(UnpackLz4Block(std::string_view("\x25"
                                               "ab"
                                               "\x02\x00",
                                               5),
                              &out)
                   .ok());
  EXPECT_THAT(Unpack(4, "x", &out).message(), HasSubstr("Brotli"));
}

TEST(Parquet, RunsAndPackedGroups) {
  std::vector<uint32_t> numbers;
  // Four times 5, then 0…7 in three bits (the example of the format's description).
  ASSERT_TRUE(DecodeRuns("\x08\x05\x03\x88\xc6\xfa", 3, 12, &numbers).ok());
  EXPECT_THAT(numbers, ElementsAre(5, 5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_FALSE(DecodeRuns("\x08", 3, 4, &numbers).ok());
}

}  // namespace
}  // namespace shoal::data
