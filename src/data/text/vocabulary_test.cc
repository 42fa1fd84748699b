#include "data/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "data/text/test_text.h"
#include "data/text/word_table.h"

namespace shoal::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Vocabulary VocabularyOf(const Corpus& corpus, uint64_t shards, uint64_t min_count) {
  std::vector<WordCounts> parts;
  for (uint64_t i = 0; i < shards; i += 2) {
    const WordCounts part = CountShards(corpus, i, std::min(i + 2, shards), shards).value();
    parts.push_back(WordCounts::Decode(part.Encode()).value());
  }
  std::reverse(parts.begin(), parts.end());
  return Vocabulary::Make(MergeCounts(std::move(parts)).value(), min_count).value();
}

TEST(Vocabulary, IsSortedByCountThenBytes) {
  TextFiles files({"b a c b\nd a b e e zebra"});
  const Vocabulary v = VocabularyOf(files.Open().value(), 3, 1);
  EXPECT_EQ(v.ToText(), "b 3\na 2\ne 2\nc 1\nd 1\nzebra 1\n");
  EXPECT_EQ(v.Find("e"), 2u);
  EXPECT_EQ(v.Find("nobody"), kNoWord);
  EXPECT_EQ(v.Find(""), kNoWord);
  EXPECT_EQ(v.words(), 10u);
  EXPECT_EQ(VocabularyOf(files.Open().value(), 1, 2).words(), 7u);
  EXPECT_EQ(VocabularyOf(files.Open().value(), 1, 2).text_words(), 10u);
}

TEST(Vocabulary, IsTheSameHoweverTheTextIsCut) {
  std::mt19937_64 random(8);
  std::vector<std::string> texts;
  for (int i = 0; i < 3; ++i) texts.push_back(RandomText(random, 300'000, 120));
  TextFiles files(texts);
  const Corpus corpus = files.Open().value();

  std::map<std::string, uint64_t> expected;
  for (const std::string& word : WithoutEnds(PlainWords(texts))) ++expected[word];
  const Vocabulary one = VocabularyOf(corpus, 1, 1);
  ASSERT_EQ(one.size(), expected.size());
  for (uint32_t id = 0; id < one.size(); ++id) {
    ASSERT_EQ(one.count(id), expected[std::string(one.word(id))]);
    ASSERT_EQ(one.Find(one.word(id)), id);
  }
  for (const uint64_t shards : {2u, 5u, 16u}) {
    const Vocabulary many = VocabularyOf(corpus, shards, 1);
    EXPECT_EQ(many.ToText(), one.ToText());
    EXPECT_EQ(many.text_digest(), one.text_digest());
  }
}

TEST(Vocabulary, TheDigestSeesEveryWordAndTheirOrder) {
  const auto digest = [](const std::string& text) {
    TextFiles files({text});
    return VocabularyOf(files.Open().value(), 1, 1).text_digest();
  };
  EXPECT_EQ(digest("a b c"), digest(" a\nb\tc\n"));
  EXPECT_NE(digest("a b c"), digest("a c b"));
  EXPECT_NE(digest("a b c"), digest("a b d"));
  EXPECT_NE(digest("a b c"), digest("a b c c"));
  // The value is part of saved models: it may not change.
  EXPECT_EQ(digest("shoal of herring"), "shoal61:099f7784bed99cf5:3");
}

TEST(Vocabulary, SaysWhyNothingIsLeft) {
  TextFiles files({"one two two"});
  const WordCounts counts = CountShard(files.Open().value(), 0, 1).value();
  const auto none = Vocabulary::Make(counts, 5);
  EXPECT_EQ(none.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(none.status().message(),
              AllOf(HasSubstr("no word occurs 5 times"), HasSubstr("3 words, 2 different"),
                    HasSubstr("'two', occurs 2 times")));
  TextFiles blank({" \n "});
  EXPECT_THAT(
      Vocabulary::Make(CountShard(blank.Open().value(), 0, 1).value(), 1).status().message(),
      HasSubstr("hold no word"));
}

TEST(Vocabulary, RoundTripsAndRefusesDamage) {
  TextFiles files({"a b b c c c longer-than-sixteen-bytes \xc3\xa4"});
  const Vocabulary v = VocabularyOf(files.Open().value(), 1, 1);
  const std::string bytes = v.Encode();
  const Vocabulary copy = Vocabulary::Decode(bytes).value();
  EXPECT_EQ(copy.ToText(), v.ToText());
  EXPECT_EQ(copy.text_digest(), v.text_digest());
  EXPECT_EQ(copy.words(), v.words());
  EXPECT_EQ(copy.min_count(), v.min_count());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Vocabulary::Decode(std::string_view(bytes).substr(0, size)).ok());
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 0x10;
    EXPECT_FALSE(Vocabulary::Decode(damaged).ok()) << i;
  }
}

TEST(WordCounts, RoundTripAndRefuseDamage) {
  TextFiles files({"a b b c\nlonger-than-sixteen-bytes longer-than-sixteen-kilos \xff"});
  const WordCounts counts = CountShard(files.Open().value(), 0, 1).value();
  EXPECT_EQ(counts.sentences, 2u);
  EXPECT_EQ(counts.not_utf8, files.paths()[0] + ", byte 60");
  const std::string bytes = counts.Encode();
  const WordCounts copy = WordCounts::Decode(bytes).value();
  EXPECT_EQ(copy.bytes, counts.bytes);
  EXPECT_EQ(copy.sizes, counts.sizes);
  EXPECT_EQ(copy.counts, counts.counts);
  EXPECT_EQ(copy.words, 7u);
  EXPECT_EQ(copy.not_utf8, counts.not_utf8);
  EXPECT_EQ(copy.digest.ToString(), counts.digest.ToString());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(WordCounts::Decode(std::string_view(bytes).substr(0, size)).ok());
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 0x10;
    EXPECT_FALSE(WordCounts::Decode(damaged).ok()) << i;
  }
}

// With a right checksum, so that the checks behind it are reached.
TEST(WordCounts, RefuseImpossibleValuesWithAValidChecksum) {
  WordCounts good;
  good.last = 1;
  good.words = 5;
  good.digest = SequenceDigest::Of(1, 5);
  good.bytes = "abbc";
  good.sizes = {1, 2, 1};
  good.counts = {1, 2, 2};
  ASSERT_TRUE(WordCounts::Decode(good.Encode()).ok());
  const auto refused = [&](auto change, std::string_view why) {
    WordCounts bad = good;
    change(bad);
    const auto result = WordCounts::Decode(bad.Encode());
    EXPECT_THAT(result.status().message(), HasSubstr(why));
  };
  refused([](WordCounts& c) { c.bytes = "cbba"; }, "do not rise");
  refused([](WordCounts& c) { c.sizes = {1, 0, 3}; }, "bytes, expected 1 to");
  refused([](WordCounts& c) { c.bytes = "ab c"; }, "whitespace");
  refused([](WordCounts& c) { c.counts[1] = 0; }, "impossible");
  refused([](WordCounts& c) { c.counts[1] = UINT64_MAX; }, "impossible");
  refused([](WordCounts& c) { c.counts[1] = 3; }, "do not add up");
  refused([](WordCounts& c) { c.first = 1; }, "do not exist");
}

TEST(WordCounts, PartsMustFit) {
  TextFiles files({std::string(1000, ' ') + "a b c d e f g h"}), other({"another text"});
  const auto part = [](const TextFiles& f, uint64_t i) {
    return CountShard(f.Open().value(), i, 3).value();
  };
  EXPECT_TRUE(MergeCounts({part(files, 2), part(files, 0), part(files, 1)}).ok());
  EXPECT_THAT(MergeCounts({part(files, 0), part(other, 1)}).status().message(),
              HasSubstr("see different data"));
  EXPECT_THAT(MergeCounts({part(files, 0), part(files, 2)}).status().message(),
              HasSubstr("do not fit"));
  EXPECT_THAT(MergeCounts({part(files, 0), part(files, 0)}).status().message(),
              HasSubstr("do not fit"));
  EXPECT_THAT(Vocabulary::Make(part(files, 1), 1).status().message(),
              HasSubstr("only shards 1 to 2"));
}

TEST(WordCounts, ForgetRareWordsWhenMemoryIsBounded) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "often w" + std::to_string(i) + " ";
  TextFiles files({text});
  const WordCounts counts = CountShard(files.Open().value(), 0, 1, {.max_words = 1000}).value();
  EXPECT_LE(counts.distinct(), 1001u);
  EXPECT_EQ(counts.words, 10'000u);
  EXPECT_GE(counts.forgotten, 4000u);
  EXPECT_TRUE(WordCounts::Decode(counts.Encode()).ok());
  EXPECT_EQ(Vocabulary::Make(counts, 5).value().count(0), 5000u);
}

TEST(WordTable, BehavesLikeAMap) {
  const bool holds = rc::check("add, find and forget", [] {
    const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty(
        rc::gen::container<std::string>(rc::gen::elementOf(std::string("abcd")))));
    WordTable table;
    std::map<std::string, uint64_t> expected;
    const auto key = [](const std::string& padded) {
      return KeyOf(padded.data(), static_cast<uint32_t>(padded.size() - 16));
    };
    for (size_t round = 0; round < 3; ++round) {
      for (const std::string& word : words) {
        const std::string plain = (round == 2 ? "a-long-prefix-to-it-" : "") + word;
        const std::string padded = plain + std::string(16, 'z');
        bool added = false;
        ++table.Add(key(padded), padded.data(), &added)->value;
        RC_ASSERT(added == (expected[plain]++ == 0));
      }
    }
    RC_ASSERT(table.size() == expected.size());
    table.Forget(3);
    for (const auto& [word, count] : expected) {
      const std::string padded = word + std::string(16, 'z');
      const WordTable::Slot* slot = table.Find(key(padded), padded.data());
      RC_ASSERT((slot != nullptr) == (count > 3));
      if (slot != nullptr) RC_ASSERT(slot->value == count);
      if (slot != nullptr) RC_ASSERT(table.WordOf(*slot) == word);
    }
  });
  EXPECT_TRUE(holds);
}

TEST(SequenceDigest, OfPartsIsThatOfTheWhole) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 50; ++round) {
    SequenceDigest whole, parts, part;
    for (int i = 0; i < 200; ++i) {
      const uint64_t hash = random();
      whole.Add(hash);
      part.Add(hash);
      if (random() % 20 == 0) {
        parts.Append(part);
        part = {};
      }
    }
    parts.Append(part);
    ASSERT_EQ(parts.ToString(), whole.ToString());
  }
}

}  // namespace
}  // namespace shoal::data
