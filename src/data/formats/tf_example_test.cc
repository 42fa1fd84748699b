#include "data/formats/tf_example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "data/formats/tfrecord.h"

namespace shoal::data {
namespace {

using testing::HasSubstr;

const TfExample& Sample() {
  static const TfExample sample = {
      {"empty", std::vector<std::string>{}},
      {"floats", std::vector<float>{0.5f, -1e30f, 3}},
      {"ints", std::vector<int64_t>{0, -1, std::numeric_limits<int64_t>::min(), 300}},
      {"text", std::vector<std::string>{"a", "", std::string("\0\xff", 2)}}};
  return sample;
}

// {"x": int64_list [1, 300]}, by hand from the protocol.
TEST(TfExample, HasTheBytesOfTheProtocol) {
  const std::string bytes("\x0a\x0e\x0a\x0c\x0a\x01x\x12\x07\x1a\x05\x0a\x03\x01\xac\x02", 16);
  EXPECT_EQ(EncodeTfExample({{"x", std::vector<int64_t>{1, 300}}}), bytes);
  const TfExample read = DecodeTfExample(bytes).value();
  EXPECT_EQ(std::get<std::vector<int64_t>>(read.at("x")), (std::vector<int64_t>{1, 300}));
}

TEST(TfExample, RoundTrips) {
  EXPECT_EQ(DecodeTfExample(EncodeTfExample(Sample())).value(), Sample());
  EXPECT_TRUE(DecodeTfExample("").value().empty());
}

TEST(TfExample, ReadsListsThatAreNotPacked) {
  // {"x": int64_list [1, 2]}, then {"y": float_list [1]}, with each value a field.
  const std::string ints("\x0a\x0d\x0a\x0b\x0a\x01x\x12\x06\x1a\x04\x08\x01\x08\x02", 15);
  EXPECT_EQ(std::get<std::vector<int64_t>>(DecodeTfExample(ints).value().at("x")),
            (std::vector<int64_t>{1, 2}));
  const std::string floats("\x0a\x0e\x0a\x0c\x0a\x01y\x12\x07\x12\x05\x0d\x00\x00\x80\x3f", 16);
  EXPECT_EQ(std::get<std::vector<float>>(DecodeTfExample(floats).value().at("y")),
            (std::vector<float>{1}));
}

TEST(TfExample, DamagedOnesNeverCrash) {
  const std::string whole = EncodeTfExample(Sample());
  for (size_t size = 0; size < whole.size(); ++size) (void)DecodeTfExample(whole.substr(0, size));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const auto read = DecodeTfExample(damaged);
      if (read.ok()) (void)EncodeTfExample(*read);
    }
  }
  EXPECT_THAT(DecodeTfExample("\x0a\x7f").status().message(), HasSubstr("cut off"));
  EXPECT_THAT(DecodeTfExample(std::string(11, '\xff')).status().message(), HasSubstr("ten bytes"));
}

TEST(TfExample, IsShownAsJson) {
  EXPECT_EQ(ToText(ToJson(
                {{"a", std::vector<std::string>{"x", "\xff"}}, {"b", std::vector<int64_t>{1}}})),
            R"({"a":["x","\\xff"],"b":[1]})");
}

// CRC32C of 32 zeros: RFC 3720, B.4; masked as tensorflow/core/lib/hash/crc32c.h does.
TEST(TfRecord, HasTheChecksumsOfTensorFlow) {
  std::string bytes;
  AppendTfRecord("", &bytes);
  EXPECT_EQ(bytes.size(), 16u);
  EXPECT_EQ(TfRecordLength(bytes.substr(0, 12)).value(), 0u);
  EXPECT_EQ(MaskedCrc(std::string(32, '\0')),
            ((0x8a9136aau >> 15) | (0x8a9136aau << 17)) + 0xa282ead8u);
  bytes[0] = 1;
  EXPECT_THAT(TfRecordLength(bytes.substr(0, 12)).status().message(), HasSubstr("no TFRecord"));
}

}  // namespace
}  // namespace shoal::data
