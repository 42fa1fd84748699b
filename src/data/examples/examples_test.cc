#include "data/examples/examples.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "data/examples/decimal.h"
#include "data/text/test_text.h"

namespace shoal::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Plain {
  float label = 0;
  std::map<uint32_t, float> features;
  bool operator==(const Plain&) const = default;
};

std::vector<Plain> PlainOf(const ExampleSet& set) {
  std::vector<Plain> all;
  for (size_t i = 0; i < set.size(); ++i) {
    Plain one{set.labels[i], {}};
    const auto features = set.FeaturesOf(i);
    for (size_t k = 0; k < features.size(); ++k) {
      const float value = set.ValuesOf(i) == nullptr ? 1.0f : set.ValuesOf(i)[k];
      EXPECT_TRUE(one.features.emplace(features[k], value).second);
      EXPECT_TRUE(k == 0 || features[k - 1] < features[k]);
      EXPECT_LT(features[k], set.feature_end);
    }
    all.push_back(std::move(one));
  }
  return all;
}

Result<ExampleSet> ReadAll(const TextFiles& files, ExampleOptions options = {}, uint64_t index = 0,
                           uint64_t count = 1) {
  TRY_ASSIGN(const Corpus corpus, files.Open());
  TRY_ASSIGN(const Shard shard, corpus.MakeShard(index, count));
  return ReadExamples(corpus, shard, options);
}

// Lines in every form that is allowed, and what they say.
std::string RandomLines(std::mt19937_64& random, size_t lines, std::vector<Plain>* plain) {
  const auto below = [&](uint64_t n) { return random() % n; };
  const bool ones = below(2) == 0;
  std::string text;
  for (size_t i = 0; i < lines; ++i) {
    if (below(20) == 0) text += below(2) == 0 ? "\n" : " \t# 1:2 nothing\r\n";
    Plain one;
    const char* const labels[] = {"1", "-1", "0", "+1", "1.0", "-1e0"};
    const char* const label = labels[below(6)];
    one.label = label == labels[0] || label == labels[3] || label == labels[4] ? 1 : 0;
    text += label;
    const size_t count = below(50) == 0 ? 2000 : below(12);
    for (size_t k = 0; k < count; ++k) {
      const uint64_t number = below(3) == 0 ? below(kMaxFeature + 1) : below(below(2) ? 30 : 99999);
      const int eighths = ones || below(3) == 0 ? 8 : static_cast<int>(below(64)) - 32;
      text += below(9) == 0 ? " \t" : " ";
      text += fmt::format("{}:{}", number, eighths / 8.0);
      one.features[static_cast<uint32_t>(number)] += static_cast<float>(eighths) / 8;
    }
    text += below(9) == 0 ? " # comment\n" : below(9) == 0 ? " \r\n" : "\n";
    plain->push_back(std::move(one));
  }
  if (below(2) == 0) text.pop_back();
  return text;
}

TEST(Examples, EveryLineIsInExactlyOneShardWhateverThePacking) {
  std::mt19937_64 random(11);
  for (int turn = 0; turn < 12; ++turn) {
    std::vector<Plain> plain;
    TextFiles files;
    for (int file = 0; file < 3; ++file) {
      const std::string text = RandomLines(random, 1 + random() % 80, &plain);
      const int packing = static_cast<int>(random() % 4);
      files.Add(packing == 0 ? Gzip(text) : packing == 1 ? Zstd(text) : text);
    }
    for (const uint64_t count : {1u, 2u, 7u, 61u}) {
      std::vector<Plain> read;
      for (uint64_t index = 0; index < count; ++index) {
        const auto set = ReadAll(files, {}, index, count);
        ASSERT_TRUE(set.ok()) << set.status().message();
        for (Plain& one : PlainOf(*set)) read.push_back(std::move(one));
      }
      ASSERT_TRUE(read == plain) << "turn " << turn << ", " << count << " shards";
    }
  }
}

TEST(Examples, ReadsLinesLongerThanTheBuffer) {
  std::string text = "1";
  for (uint32_t i = 1; i <= 600'000; ++i) text += fmt::format(" {}:1", i);
  const TextFiles files({"0 5:1\n" + text + "\n1 7:1\n"});
  const auto set = ReadAll(files);
  ASSERT_TRUE(set.ok()) << set.status().message();
  ASSERT_EQ(set->size(), 3u);
  EXPECT_EQ(set->FeaturesOf(1).size(), 600'000u);
  EXPECT_EQ(set->FeaturesOf(1).back(), 600'000u);
  EXPECT_THAT(set->FeaturesOf(2), ElementsAre(7u));
  EXPECT_TRUE(set->values.empty());
  size_t examples = 0;
  for (uint64_t index = 0; index < 5; ++index) examples += ReadAll(files, {}, index, 5)->size();
  EXPECT_EQ(examples, 3u);
}

TEST(Examples, HashesAndAddsUpCollisions) {
  const TextFiles files({"1 18446744073709551615:2 3:1 17:0.5\n"});
  const auto set = ReadAll(files, {.hash_bits = 1});
  ASSERT_TRUE(set.ok()) << set.status().message();
  float sum = 0;
  for (size_t i = 0; i < set->values.size(); ++i) sum += set->values[i];
  EXPECT_EQ(sum, 3.5f);
  EXPECT_LE(set->feature_end, 2u);
  // Neighbours are spread: of 2^16 consecutive numbers nearly all have a place of their own.
  std::vector<bool> used(1 << 18);
  size_t distinct = 0;
  for (uint64_t i = 0; i < 1 << 16; ++i) {
    const uint32_t at = HashFeature(i, 18);
    ASSERT_LT(at, 1u << 18);
    distinct += !used[at];
    used[at] = true;
  }
  EXPECT_GT(distinct, 65'000u);
}

TEST(Examples, LabelsOfOtherTasks) {
  const TextFiles files({"2.5 1:1\n-3\n"});
  const auto set = ReadAll(files, {.binary_labels = false});
  ASSERT_TRUE(set.ok()) << set.status().message();
  EXPECT_EQ(set->labels[0], 2.5f);
  EXPECT_EQ(set->labels[1], -3.0f);
}

TEST(Examples, RefusesEachMalformedLineWithItsPlace) {
  const std::pair<const char*, const char*> bad[] = {
      {"2 1:1", "got '2', expected a label"},
      {"x 1:1", "got 'x', expected a label"},
      {"1,0 1:1", "got '1,0', expected a label"},
      {"nan 1:1", "got 'nan'"},
      {"1 1", "got '1', expected NUMBER:VALUE"},
      {"1 1:", "got '1:', expected NUMBER:VALUE"},
      {"1 :1", "got ':1'"},
      {"1 qid:3 1:1", "got 'qid:3'"},
      {"1 -1:1", "got '-1:1'"},
      {"1 1:1:1", "got '1:1:1'"},
      {"1 1:1e", "got '1:1e'"},
      {"1 1:inf", "got '1:inf'"},
      {"1 1:1e39", "got '1:1e39'"},
      {"1 4294967295:1", "got '4294967295:1', expected a feature number below"},
      {"1 99999999999999999999999:1", "expected NUMBER:VALUE"},
  };
  for (const auto& [line, message] : bad) {
    TextFiles files;
    const auto path = files.Add(std::string("1 1:1\n\n0 2:1\n") + line + " 9:1\n");
    for (const uint64_t count : {1u, 9u}) {
      std::string found;
      for (uint64_t index = 0; index < count && found.empty(); ++index) {
        const auto set = ReadAll(files, {}, index, count);
        if (set.ok()) continue;
        EXPECT_EQ(set.status().code(), Code::kInvalidArgument);
        found = set.status().message();
      }
      EXPECT_THAT(found, HasSubstr(path.string() + ":4: got ")) << line;
      EXPECT_THAT(found, HasSubstr(message)) << line;
    }
  }
}

TEST(Decimal, ReadsDigitsAsTheLibraryDoes) {
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 20'000; ++turn) {
    const uint64_t number = random() >> (random() % 64);
    const std::string text = std::to_string(number) + ":12345678";
    uint64_t value = 0;
    const char* const end = ParseDigits(text.c_str(), &value);
    ASSERT_NE(end, nullptr) << text;
    ASSERT_EQ(value, number);
    ASSERT_EQ(*end, ':');
  }
  uint64_t value = 0;
  for (const char* text :
       {"18446744073709551616:0000000", "x1234567", ":1234567", "\xb1\xb2:00000"})
    EXPECT_EQ(ParseDigits(text, &value), nullptr) << text;
}

TEST(Decimal, ReadsReals) {
  const auto real = [](std::string text) -> std::optional<float> {
    const std::string bounded = text + "\n";
    float value = 0;
    const char* const end = ParseReal(bounded.data(), bounded.data() + text.size(), &value);
    return end == bounded.data() + text.size() ? std::optional<float>(value) : std::nullopt;
  };
  EXPECT_EQ(real("0.1"), 0.1f);
  EXPECT_EQ(real("+2"), 2.0f);
  EXPECT_EQ(real("-1.5e-3"), -1.5e-3f);
  EXPECT_EQ(real("1e-60"), 0.0f);
  for (const char* bad : {"", "+", "+-1", "1e60", "nan", "inf", "-inf", "0x10", "1.5f"})
    EXPECT_EQ(real(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace shoal::data
