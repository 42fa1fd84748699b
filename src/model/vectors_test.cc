#include "model/vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "base/file.h"
#include "base/id.h"

namespace shoal::model {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kAll = uint64_t{1} << 31;

std::string Written(Format format, const Vectors& vectors) {
  const TempDir temp = TempDir::Create().value();
  const auto path = temp.path() / "vectors";
  const auto digest = WriteVectorsFile(path, format, RowsOf(vectors));
  EXPECT_TRUE(digest.ok()) << digest.status().ToString();
  std::string bytes = ReadFile(path, kAll).value();
  EXPECT_EQ(*digest, Sha256Hex(bytes));
  return bytes;
}

bool SameBits(const Vectors& a, const Vectors& b) {
  return a.words == b.words && a.dim == b.dim &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                    [](float x, float y) {
                      return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
                    });
}

TEST(Vectors, AreWrittenAsWord2vecDoes) {
  const Vectors vectors{{"the", "h\xc3\xa9"}, 2, {0.5f, -1.0f, 0.1f, 1e-20f}};
  EXPECT_EQ(Written(Format::kText, vectors), "2 2\nthe 0.5 -1\nh\xc3\xa9 0.1 1e-20\n");
  const std::string binary = Written(Format::kBinary, vectors);
  EXPECT_EQ(binary.substr(0, 16), std::string("2 2\nthe \0\0\0\x3f\0\0\x80\xbf", 16));
  EXPECT_EQ(binary.size(), 4u + 4 + 8 + 1 + 4 + 8 + 1);
}

TEST(Vectors, RoundTripBitByBitInBothFormats) {
  const bool holds = rc::check("what is written is read", [] {
    std::mt19937_64 random(*rc::gen::arbitrary<uint64_t>());
    Vectors vectors;
    vectors.dim = *rc::gen::inRange<uint64_t>(1, 40);
    const size_t rows = *rc::gen::inRange<size_t>(0, 30);
    for (size_t i = 0; i < rows; ++i) {
      vectors.words.push_back("w" + std::to_string(random() % 1000) +
                              std::string(random() % 50, 'x'));
      for (uint64_t j = 0; j < vectors.dim; ++j) {
        float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
        if (!std::isfinite(value)) value = 0.25f;
        vectors.values.push_back(value);
      }
    }
    for (const Format format : {Format::kText, Format::kBinary}) {
      const auto read = ParseVectors(Written(format, vectors), "test");
      RC_ASSERT(read.ok());
      RC_ASSERT(SameBits(*read, vectors));
    }
  });
  EXPECT_TRUE(holds);
}

TEST(Vectors, LargeFilesAreReadThroughTheWindow) {
  Vectors vectors;
  vectors.dim = 700;
  std::mt19937 random(1);
  for (int i = 0; i < 1500; ++i) {
    vectors.words.push_back("word" + std::to_string(i));
    for (uint64_t j = 0; j < vectors.dim; ++j) {
      vectors.values.push_back(static_cast<float>(random()) / 1e9f);
    }
  }
  const TempDir temp = TempDir::Create().value();
  for (const Format format : {Format::kText, Format::kBinary}) {
    const auto path = temp.path() / (format == Format::kText ? "vectors.txt" : "vectors.bin");
    ASSERT_TRUE(WriteVectorsFile(path, format, RowsOf(vectors)).ok());
    EXPECT_TRUE(SameBits(ReadVectors(path).value(), vectors));
    EXPECT_TRUE(SameBits(ReadVectors(temp.path()).value(), vectors));
  }
  EXPECT_EQ(ReadVectors(temp.path(), {.max_rows = 10}).value().words.size(), 10u);
  EXPECT_EQ(ReadVectors(temp.path(), {.max_bytes = 1000}).status().code(),
            Code::kResourceExhausted);
}

TEST(Vectors, ReadFilesOfOtherPrograms) {
  // gensim writes no newline behind a row; word2vec.c writes a space before each newline of text.
  const std::string gensim(
      "2 1\na \0\0\x80\x3f"
      "b \0\0\0\x40",
      16);
  const Vectors read = ParseVectors(gensim, "gensim").value();
  EXPECT_EQ(read.words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read.values, (std::vector<float>{1, 2}));
  EXPECT_EQ(ParseVectors("1 2\r\na 1.5 +2 \r\n", "text").value().values,
            (std::vector<float>{1.5f, 2}));
  const Vectors odd = ParseVectors("1 4\na nan inf 1e-50 -1e50\n", "text").value();
  EXPECT_TRUE(std::isnan(odd.values[0]));
  EXPECT_EQ(odd.values[1], std::numeric_limits<float>::infinity());
  EXPECT_EQ(odd.values[2], 0);
  EXPECT_EQ(odd.values[3], -std::numeric_limits<float>::infinity());
}

TEST(Vectors, RefuseErrorsWithTheirPosition) {
  const auto why = [](std::string_view bytes) {
    const auto read = ParseVectors(bytes, "v");
    EXPECT_FALSE(read.ok()) << bytes;
    return read.status().message();
  };
  EXPECT_THAT(why(""), HasSubstr("no word vectors"));
  EXPECT_THAT(why("hello world\n"), HasSubstr("no word vectors"));
  EXPECT_THAT(why("1 2 3\n"), HasSubstr("no word vectors"));
  EXPECT_THAT(why(std::string(100'000, '7')), HasSubstr("no word vectors"));
  EXPECT_THAT(why("1 0\na\n"), HasSubstr("1 to 65536"));
  EXPECT_THAT(why("1 100000\na\n"), HasSubstr("1 to 65536"));
  EXPECT_THAT(why("-1 2\na 1 2\n"), HasSubstr("no word vectors"));
  EXPECT_THAT(why("99999999999999999999999 2\na 1 2\n"), HasSubstr("no word vectors"));
  EXPECT_THAT(why("2000000000 2\na 1 2\n"), HasSubstr("it is cut off"));
  EXPECT_THAT(why("2 2\na 1 2\nb 1\n"), HasSubstr("row 2: has 1 values, expected 2"));
  EXPECT_THAT(why("2 2\na 1 2\nb 1 2 3\n"), HasSubstr("row 2: has more than 2"));
  EXPECT_THAT(why("2 2\na 1 2\nb 1 x2\n"), HasSubstr("row 2: value 2: got 'x2'"));
  EXPECT_THAT(why("2 1\nlongword 1.25\n"), HasSubstr("row 2: the file ends"));
  EXPECT_THAT(why(std::string("2 1\na \0\0", 8)), HasSubstr("cut off"));
  EXPECT_THAT(why(std::string("1 2\nabcdefghi \0\0", 16)), HasSubstr("ends inside the vector"));
  EXPECT_EQ(ReadVectors("/nowhere/at/all").status().code(), Code::kNotFound);
  const TempDir temp = TempDir::Create().value();
  EXPECT_THAT(ReadVectors(temp.path()).status().message(), HasSubstr("holds no model"));
}

TEST(Vectors, EveryTruncationOfABinaryFileIsFound) {
  const Vectors vectors{{"one", "two", "three"}, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  const std::string bytes = Written(Format::kBinary, vectors);
  for (size_t size = 0; size + 1 < bytes.size(); ++size) {  // the last byte is only a newline
    EXPECT_FALSE(ParseVectors(std::string_view(bytes).substr(0, size), "v").ok()) << size;
  }
}

TEST(Vectors, WordsThatCannotBeReadBackAreNotWritten) {
  const TempDir temp = TempDir::Create().value();
  for (const char* word : {"", "two words", "tab\t", "line\n"}) {
    const Vectors vectors{{word}, 1, {1}};
    const auto path = temp.path() / "v";
    EXPECT_FALSE(WriteVectorsFile(path, Format::kText, RowsOf(vectors)).ok());
    EXPECT_TRUE(std::filesystem::is_empty(temp.path()));
  }
}

}  // namespace
}  // namespace shoal::model
