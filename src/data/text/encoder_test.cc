#include "data/text/encoder.h"

#include <gtest/gtest.h>

#include "base/fault_injection.h"
#include "data/text/test_text.h"

namespace shoal::data {
namespace {

using Ids = std::vector<uint32_t>;

Ids ReadAll(EncodedCursor& cursor, size_t block = 1000) {
  Ids all;
  Ids some(block);
  for (;;) {
    const size_t got = cursor.Read(some).value();
    if (got == 0) return all;
    all.insert(all.end(), some.begin(), some.begin() + static_cast<ptrdiff_t>(got));
  }
}

class Encoder : public ::testing::Test {
 protected:
  Encoder() : random_(4), text_(RandomText(random_, 900'000, 80)), files_({text_}) {}
  ~Encoder() override { EXPECT_TRUE(SetFaults("").ok()); }

  // What the rule says the numbers of the whole text are.
  Ids Expected(const Vocabulary& vocabulary) const {
    Ids ids;
    for (const std::string& word : PlainWords({text_})) {
      const uint32_t id = word.empty() ? kSentenceEnd : vocabulary.Find(word);
      if (id == kNoWord) continue;
      if (id == kSentenceEnd && (ids.empty() || ids.back() == kSentenceEnd)) continue;
      ids.push_back(id);
    }
    return ids;
  }

  std::mt19937_64 random_;
  std::string text_;
  TextFiles files_;
  Corpus corpus_ = files_.Open().value();
  Vocabulary vocabulary_ = Vocabulary::Make(CountShard(corpus_, 0, 1).value(), 3).value();
  Shard shard_ = corpus_.MakeShard(0, 1).value();
};

TEST_F(Encoder, OnDiskAndAnewGiveTheSameNumbers) {
  const Ids expected = Expected(vocabulary_);
  for (const auto& scratch : {files_.directory(), std::filesystem::path()}) {
    const auto shard = EncodedShard::Make(corpus_, shard_, vocabulary_, scratch).value();
    EXPECT_EQ(shard.on_disk(), !scratch.empty());
    EXPECT_EQ(shard.items(), expected.size());
    EXPECT_EQ(shard.words(), vocabulary_.words());
    EXPECT_TRUE(ReadAll(*shard.Open().value()) == expected);
    EXPECT_TRUE(ReadAll(*shard.Open().value(), 7) == expected);
  }
  // The scratch file has no name.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(files_.directory()), {}), 1);
}

TEST_F(Encoder, SeeksToAnyItem) {
  const Ids expected = Expected(vocabulary_);
  for (const auto& scratch : {files_.directory(), std::filesystem::path()}) {
    const auto shard = EncodedShard::Make(corpus_, shard_, vocabulary_, scratch).value();
    const auto cursor = shard.Open().value();
    for (const uint64_t at :
         {uint64_t{5000}, uint64_t{17}, uint64_t{0}, shard.items() - 1, shard.items()}) {
      ASSERT_TRUE(cursor->Seek(at).ok());
      EXPECT_EQ(cursor->position(), at);
      Ids one(1);
      ASSERT_EQ(cursor->Read(one).value(), at < shard.items() ? 1u : 0u);
      EXPECT_TRUE(at == shard.items() || one[0] == expected[at]);
    }
    EXPECT_EQ(cursor->Seek(shard.items() + 1).code(), Code::kOutOfRange);
  }
}

TEST_F(Encoder, AFullDiskMeansTokenisingAnew) {
  ASSERT_TRUE(SetFaults("file.write=ENOSPC@2").ok());
  const auto shard = EncodedShard::Make(corpus_, shard_, vocabulary_, files_.directory()).value();
  EXPECT_FALSE(shard.on_disk());
  EXPECT_TRUE(ReadAll(*shard.Open().value()) == Expected(vocabulary_));
}

TEST_F(Encoder, AnotherErrorOfTheDiskIsAnError) {
  ASSERT_TRUE(SetFaults("file.write=EIO@1").ok());
  EXPECT_FALSE(EncodedShard::Make(corpus_, shard_, vocabulary_, files_.directory()).ok());
  EXPECT_FALSE(EncodedShard::Make(corpus_, shard_, vocabulary_, files_.directory() / "none").ok());
}

TEST_F(Encoder, ShardsTogetherHaveAllWordsOnce) {
  Ids all;
  for (uint64_t i = 0; i < 7; ++i) {
    const auto shard = EncodedShard::Make(corpus_, corpus_.MakeShard(i, 7).value(), vocabulary_,
                                          files_.directory())
                           .value();
    const Ids ids = ReadAll(*shard.Open().value());
    all.insert(all.end(), ids.begin(), ids.end());
  }
  EXPECT_TRUE(all == Expected(vocabulary_));
}

}  // namespace
}  // namespace shoal::data
