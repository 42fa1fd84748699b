// The promise of shard.h: whatever the text, the files and the number of shards, the shards in
// order are the text, word for word.
#include "data/corpus/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "data/text/test_text.h"

namespace shoal::data {
namespace {

using ::testing::HasSubstr;

// All shards of `count` one after the other, without sentence ends.
Words AllShards(const Corpus& corpus, uint64_t count, size_t batch = 64) {
  Words all;
  for (uint64_t i = 0; i < count; ++i) {
    const Words words = WithoutEnds(WordsOf(corpus, i, count, batch).value());
    all.insert(all.end(), words.begin(), words.end());
  }
  return all;
}

struct Pieces {
  std::vector<std::string> texts;
  std::vector<std::string> stored;
};

// Up to six files, some of them compressed, small or large.
Pieces RandomFiles(uint64_t seed) {
  std::mt19937_64 random(seed);
  Pieces pieces;
  const size_t files = 1 + random() % 6;
  const bool large = random() % 4 == 0;
  const size_t line = random() % 3 == 0 ? 10'000'000 : 1 + random() % 400;
  for (size_t i = 0; i < files; ++i) {
    const size_t size = large ? random() % 600'000 : random() % 300;
    pieces.texts.push_back(RandomText(random, size + 1, line));
    const uint64_t kind = random() % 5;
    const std::string& text = pieces.texts.back();
    pieces.stored.push_back(kind == 0 ? Gzip(text) : kind == 1 ? Zstd(text) : text);
  }
  return pieces;
}

TEST(Shard, AnyCutOfAnyTextGivesItsWordsInOrderExactlyOnce) {
  EXPECT_TRUE(rc::check("shards in order are the text", [] {
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const uint64_t count = *rc::gen::inRange<uint64_t>(1, 40);
    const size_t batch = *rc::gen::inRange<size_t>(2, 300);
    const Pieces pieces = RandomFiles(seed);
    TextFiles files(pieces.stored);
    const Corpus corpus = files.Open().value();
    const Words expected = PlainWords(pieces.texts);
    RC_ASSERT(WordsOf(corpus, 0, 1, batch).value() == expected);
    RC_ASSERT(AllShards(corpus, count, batch) == WithoutEnds(expected));
  }));
}

TEST(Shard, PartsThatAreCutIntoUnlikeNumbersOfShardsFitTogether) {
  EXPECT_TRUE(rc::check("shards of the parts in order are the text", [] {
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const uint64_t parts = *rc::gen::inRange<uint64_t>(1, 6);
    const Pieces pieces = RandomFiles(seed);
    TextFiles files(pieces.stored);
    const Corpus corpus = files.Open().value();
    std::mt19937_64 random(seed);
    Words all;
    for (uint64_t part = 0; part < parts; ++part) {
      const uint64_t count = 1 + random() % 9;
      for (uint64_t i = 0; i < count; ++i) {
        const Shard shard = corpus.MakeShardWithin(part, {parts}, i, count).value();
        const Words words = WithoutEnds(WordsOf(corpus, shard).value());
        all.insert(all.end(), words.begin(), words.end());
      }
    }
    RC_ASSERT(all == WithoutEnds(PlainWords(pieces.texts)));
  }));
}

// Of words that are all different, so that the order in which they come says which part has which.
TEST(Shard, PartsOfManyBlocksHaveEveryWordOnceWhateverTheirShards) {
  EXPECT_TRUE(rc::check("the blocks of all parts are the text", [] {
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const Division division{*rc::gen::inRange<uint64_t>(1, 6), *rc::gen::inRange<uint64_t>(1, 9)};
    const Pieces pieces = RandomFiles(seed);
    TextFiles files(pieces.stored);
    const Corpus corpus = files.Open().value();
    std::mt19937_64 random(seed);
    std::multiset<std::string> all, expected;
    std::vector<ShardRange> ranges;
    for (uint64_t part = 0; part < division.parts; ++part) {
      const std::vector<ShardRange> own = corpus.RangesOf(part, division).value();
      for (const ShardRange& range : own) {
        RC_ASSERT(range.begin < range.end);
        ranges.push_back(range);
      }
      const uint64_t count = 1 + random() % 5;
      for (uint64_t i = 0; i < count; ++i) {
        const Shard shard = corpus.MakeShardWithin(part, division, i, count).value();
        for (const auto& word : WithoutEnds(WordsOf(corpus, shard).value())) all.insert(word);
      }
    }
    for (const auto& word : WithoutEnds(PlainWords(pieces.texts))) expected.insert(word);
    RC_ASSERT(all == expected);
    std::ranges::sort(ranges, {}, &ShardRange::begin);
    ShardBoundary at;
    for (const ShardRange& range : ranges) {
      RC_ASSERT(range.begin == at);
      at = range.end;
    }
    RC_ASSERT(at == (ShardBoundary{corpus.files().size(), 0}));
  }));
}

// As in a file that is ordered by time: each part begins early, ends late, and its middle is the
// middle of the whole.
TEST(Shard, PartsOfManyBlocksAreOfTheSameTime) {
  TextFiles files({std::string(1 << 20, 'x'), std::string(1 << 20, 'y')});
  const Corpus corpus = files.Open().value();
  const auto weight = [](const ShardBoundary& at) {
    return static_cast<double>(at.file << 20 | at.position);
  };
  for (const uint64_t parts : {2u, 3u, 8u}) {
    for (uint64_t part = 0; part < parts; ++part) {
      double sum = 0, all = 0;
      const std::vector<ShardRange> own = corpus.RangesOf(part, {parts, 16}).value();
      for (const ShardRange& range : own) {
        const double size = weight(range.end) - weight(range.begin);
        sum += size * (weight(range.begin) + weight(range.end)) / 2;
        all += size;
      }
      EXPECT_NEAR(all, static_cast<double>(2 << 20) / static_cast<double>(parts), 32) << part;
      EXPECT_NEAR(sum / all, 1 << 20, 64) << part;
    }
  }
}

// A border near a compressed file's end goes there for large shards and not for small ones: where
// each worker counted by its own threads, neighbours cut at different places.
TEST(Shard, ThePlaceBetweenTwoPartsDoesNotDependOnTheirShards) {
  std::mt19937_64 random(5);
  const std::string text = RandomText(random, 20'000, 60);
  const std::string more = RandomText(random, 18'900, 60);
  TextFiles files({Gzip(text), Gzip(more)});
  const Corpus corpus = files.Open().value();
  const auto last_of_first = corpus.MakeShardWithin(0, {2}, 0, 1).value().segments.back();
  const auto begin = corpus.RangesOf(1, {2}).value().front().begin;
  EXPECT_EQ(begin, (ShardBoundary{1, 0}));
  EXPECT_EQ(last_of_first.file, 0u);
  EXPECT_EQ(last_of_first.end, kEndOfFile);
  for (const uint64_t count : {1u, 2u, 7u, 40u}) {
    const auto first = corpus.MakeShardWithin(1, {2}, 0, count).value().segments.front();
    EXPECT_EQ((ShardBoundary{first.file, first.begin}), begin) << count;
  }
}

TEST(Shard, CutsNoLineThatIsShorterThanTheSearch) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20; ++round) {
    const std::string text = RandomText(random, 3000 + random() % 200'000, 200);
    TextFiles files({text});
    const Corpus corpus = files.Open().value();
    for (const uint64_t count : {2u, 3u, 7u, 50u}) {
      Words all;
      for (uint64_t i = 0; i < count; ++i) {
        const Words words = WordsOf(corpus, i, count).value();
        all.insert(all.end(), words.begin(), words.end());
      }
      EXPECT_TRUE(all == PlainWords({text})) << "sentences differ with " << count << " shards";
    }
  }
}

TEST(Shard, CutsOneEndlessLineEvenly) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "word ";
  TextFiles files({text});
  const Corpus corpus = files.Open().value();
  for (uint64_t i = 0; i < 8; ++i) {
    const size_t words = WithoutEnds(WordsOf(corpus, i, 8).value()).size();
    EXPECT_NEAR(static_cast<double>(words), 25'000, 1);
  }
}

TEST(Shard, OneWordLongerThanEverythingBelongsToItsFirstShard) {
  const std::string text = "first " + std::string(900'000, 'x') + " last";
  TextFiles files({text});
  const Corpus corpus = files.Open().value();
  for (const uint64_t count : {1u, 2u, 9u, 33u}) {
    EXPECT_EQ(AllShards(corpus, count), (Words{"first", std::string(kMaxWordBytes, 'x'), "last"}));
  }
}

TEST(Shard, MoreShardsThanBytes) {
  TextFiles files({"a b\nc", "\n", "d"});
  const Corpus corpus = files.Open().value();
  EXPECT_EQ(AllShards(corpus, 1000), (Words{"a", "b", "c", "d"}));
}

TEST(Shard, WholeCompressedFilesGoToShardsWhereTheyFit) {
  std::mt19937_64 random(5);
  std::vector<std::string> packed;
  for (int i = 0; i < 4; ++i) packed.push_back(Gzip(RandomText(random, 20'000, 60)));
  TextFiles files(packed);
  const Corpus corpus = files.Open().value();
  for (uint64_t i = 0; i < 4; ++i) {
    const Shard shard = corpus.MakeShard(i, 4).value();
    ASSERT_EQ(shard.segments.size(), 1u);
    EXPECT_EQ(shard.segments[0].file, i);
    EXPECT_EQ(shard.segments[0].begin, 0u);
    EXPECT_EQ(shard.segments[0].end, kEndOfFile);
  }
}

TEST(Shard, OneCompressedFileIsSharedOutEvenly) {
  std::mt19937_64 random(6);
  const std::string text = RandomText(random, 2'000'000, 60);
  for (const std::string& packed : {Gzip(text), Zstd(text)}) {
    TextFiles files({packed});
    const Corpus corpus = files.Open().value();
    const double expected = static_cast<double>(WithoutEnds(PlainWords({text})).size()) / 4;
    for (uint64_t i = 0; i < 4; ++i) {
      const auto words = static_cast<double>(WithoutEnds(WordsOf(corpus, i, 4).value()).size());
      EXPECT_NEAR(words, expected, expected / 10);
    }
    EXPECT_TRUE(AllShards(corpus, 4) == WithoutEnds(PlainWords({text})));
  }
}

TEST(Corpus, LeavesOutEmptyFilesUnlessAllAre) {
  TextFiles files({"", "text", ""});
  EXPECT_EQ(files.Open().value().files().size(), 1u);
  TextFiles one({""});
  EXPECT_THAT(one.Open().status().message(), HasSubstr("text-0 is empty"));
  TextFiles two({"", ""});
  EXPECT_THAT(two.Open().status().message(), HasSubstr("all 2 data files are empty"));
  EXPECT_THAT(Corpus::Open({}).status().message(), HasSubstr("no data file"));
  EXPECT_THAT(Corpus::Open({"gs://b/x"}).status().message(), HasSubstr("gs is not known"));
  EXPECT_TRUE(Corpus::Open({"file://" + files.paths()[1]}).ok());
}

TEST(Corpus, TheFingerprintTellsDifferentDataApart) {
  TextFiles a({"some text", "more"}), b({"some text", "more"}), c({"more", "some text"}),
      d({"some text", "more!"});
  EXPECT_EQ(a.Open().value().fingerprint(), b.Open().value().fingerprint());
  EXPECT_NE(a.Open().value().fingerprint(), c.Open().value().fingerprint());
  EXPECT_NE(a.Open().value().fingerprint(), d.Open().value().fingerprint());
}

}  // namespace
}  // namespace shoal::data
