// The data cache: which files are copied, that the text stays the same, and the behaviour if
// nothing can be cached.
#include "learn/data_locality/data_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/fault_injection.h"
#include "data/text/word_counts.h"
#include "host/files/cached_file.h"

namespace shoal::learn {
namespace {

namespace fs = std::filesystem;

class DataCacheTest : public testing::Test {
 protected:
  // Four files of different words; a worker of two reads the first one and half of the second …
  void SetUp() override {
    for (const char* word : {"one", "two", "three", "four"}) {
      const fs::path path = dir_.path() / word;
      std::ofstream out(path);
      for (int i = 0; i < 3000; ++i) out << word << ' ' << (i % 7) << '\n';
      paths_.push_back(path);
    }
    options_.keep = CacheMode::kAuto;
    options_.cache = dir_.path() / "cache";
    options_.on_network = [this](const fs::path& path) { return path != paths_[0]; };
  }
  void TearDown() override { ASSERT_TRUE(SetFaults("").ok()); }

  CachedCorpus Bring(uint64_t part, uint64_t count) {
    const data::Corpus corpus = data::Corpus::Open(paths_).value();
    return CacheShards(corpus, {corpus.MakeShard(part, count).value()}, options_);
  }
  std::string CountsOf(const data::Corpus& corpus, uint64_t part, uint64_t count) {
    return data::CountShards(corpus, part, part + 1, count).value().Encode();
  }
  uint64_t SizeOf(size_t file) { return fs::file_size(paths_[file]); }

  TempDir dir_ = TempDir::Create().value();
  std::vector<std::string> paths_;
  DataCacheOptions options_;
};

TEST_F(DataCacheTest, NetworkFilesAreCopiedOnce) {
  const CachedCorpus first = Bring(0, 1);
  EXPECT_EQ(first.bytes.local, SizeOf(0));
  EXPECT_EQ(first.bytes.copied, SizeOf(1) + SizeOf(2) + SizeOf(3));
  EXPECT_EQ(first.bytes.kept + first.bytes.remote, 0u);
  const CachedCorpus second = Bring(0, 1);
  EXPECT_EQ(second.bytes.kept, first.bytes.copied);
  EXPECT_EQ(second.bytes.copied, 0u);
  const data::Corpus corpus = data::Corpus::Open(paths_).value();
  EXPECT_EQ(second.corpus.fingerprint(), corpus.fingerprint());
  EXPECT_EQ(CountsOf(second.corpus, 0, 1), CountsOf(corpus, 0, 1));
  // Also if all copies have been evicted meanwhile.
  fs::remove_all(options_.cache);
  EXPECT_EQ(CountsOf(second.corpus, 0, 1), CountsOf(corpus, 0, 1));
}

TEST_F(DataCacheTest, AFileOfWhichLittleIsReadStaysWhereItIs) {
  const CachedCorpus part = Bring(2, 12);  // of the third file a third
  EXPECT_EQ(part.bytes.copied + part.bytes.kept, 0u);
  EXPECT_GT(part.bytes.remote, 0u);
  EXPECT_FALSE(fs::exists(options_.cache));
}

TEST_F(DataCacheTest, ACopyThatIsThereIsReadHoweverLittleOfIt) {
  Bring(0, 1);
  const CachedCorpus part = Bring(2, 12);
  EXPECT_GT(part.bytes.kept, 0u);
  EXPECT_EQ(part.bytes.remote + part.bytes.copied, 0u);
}

TEST_F(DataCacheTest, CachedBytesOfEachPart) {
  const data::Corpus corpus = data::Corpus::Open(paths_).value();
  EXPECT_EQ(FindCachedParts(corpus, {4}, options_), std::vector<CachedPart>{});
  EXPECT_FALSE(fs::exists(options_.cache));
  Bring(3, 4);
  const auto held = FindCachedParts(corpus, {4}, options_);
  ASSERT_TRUE(held);
  ASSERT_FALSE(held->empty());
  EXPECT_EQ((*held)[0].part, 3u);
  EXPECT_GT((*held)[0].bytes, SizeOf(3) / 2);
  std::ofstream(paths_[3]) << "other words\n";  // it is another file now
  EXPECT_EQ(FindCachedParts(data::Corpus::Open(paths_).value(), {4}, options_),
            std::vector<CachedPart>{});
  options_.keep = CacheMode::kOff;
  EXPECT_EQ(FindCachedParts(corpus, {4}, options_), std::nullopt);
}

TEST_F(DataCacheTest, AFileThatHasChangedIsCopiedAgain) {
  Bring(0, 1);
  std::ofstream(paths_[3]) << "other words, and fewer\n";
  const CachedCorpus again = Bring(0, 1);
  EXPECT_EQ(again.bytes.copied, SizeOf(3));
  EXPECT_EQ(again.bytes.kept, SizeOf(1) + SizeOf(2));
  EXPECT_EQ(CountsOf(again.corpus, 0, 1), CountsOf(data::Corpus::Open(paths_).value(), 0, 1));
}

TEST_F(DataCacheTest, ADamagedCopyIsMadeAgain) {
  Bring(0, 1);
  for (const auto& entry : fs::recursive_directory_iterator(options_.cache / "blobs")) {
    if (!entry.is_regular_file()) continue;
    fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
    std::fstream(entry.path(), std::ios::in | std::ios::out) << "XX";
  }
  const CachedCorpus again = Bring(0, 1);
  EXPECT_EQ(again.bytes.kept, 0u);
  EXPECT_EQ(CountsOf(again.corpus, 0, 1), CountsOf(data::Corpus::Open(paths_).value(), 0, 1));
}

TEST_F(DataCacheTest, WhereNothingCanBeKeptAllIsReadFromWhereItLies) {
  const std::string whole = CountsOf(data::Corpus::Open(paths_).value(), 0, 1);
  fs::create_directories(options_.cache);
  fs::permissions(options_.cache, fs::perms::all);  // other users could create entries there
  const CachedCorpus shared = Bring(0, 1);
  EXPECT_EQ(shared.bytes.remote, SizeOf(1) + SizeOf(2) + SizeOf(3));
  EXPECT_EQ(CountsOf(shared.corpus, 0, 1), whole);
  fs::permissions(options_.cache, fs::perms::owner_all);
  ASSERT_TRUE(SetFaults("blob.write=ENOSPC").ok());
  const CachedCorpus full = Bring(0, 1);
  EXPECT_EQ(full.bytes.remote, SizeOf(1));
  EXPECT_EQ(full.bytes.copied, SizeOf(2) + SizeOf(3));
  EXPECT_EQ(CountsOf(full.corpus, 0, 1), whole);
  EXPECT_TRUE(fs::is_empty(options_.cache / "tmp"));
  options_.keep = CacheMode::kOff;
  EXPECT_EQ(Bring(0, 1).bytes.remote, SizeOf(1) + SizeOf(2) + SizeOf(3));
}

TEST_F(DataCacheTest, NamesOfEvictedFilesAreRemoved) {
  Bring(0, 1);
  fs::remove_all(options_.cache / "blobs");
  std::ofstream(paths_[3]) << "other words\n";
  Bring(0, 1);
  size_t names = 0;
  for (const auto& entry : fs::directory_iterator(options_.cache / "names"))
    names += entry.exists();
  EXPECT_EQ(names, 3u);  // one a file, though one had another name before
}

TEST_F(DataCacheTest, ANameThatAnotherWorkerIsMakingIsLeftAlone) {
  fs::create_directories(options_.cache / "names");
  const fs::path aside = options_.cache / "names" / (std::string(64, 'a') + ".tmp-0a1b2c");
  std::ofstream(aside) << "";
  ASSERT_EQ(Bring(0, 1).bytes.copied, SizeOf(1) + SizeOf(2) + SizeOf(3));
  EXPECT_TRUE(fs::exists(aside));
}

TEST_F(DataCacheTest, NamesThatLieLeadNowhere) {
  Bring(0, 1);
  int lied = 0;
  for (const auto& entry : fs::directory_iterator(options_.cache / "names")) {
    const char* lies[] = {"", "../../../../etc/passwd 3\n", "0123 x\n"};
    std::ofstream(entry.path()) << lies[lied++ % 3];
  }
  ASSERT_EQ(lied, 3);
  EXPECT_EQ(Bring(0, 1).bytes.copied, SizeOf(1) + SizeOf(2) + SizeOf(3));
}

}  // namespace
}  // namespace shoal::learn
