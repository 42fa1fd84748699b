#include "rendezvous/logs/log_archive.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "base/file.h"
#include "rendezvous/logs/log_times.h"
#include "rendezvous/logs/task_logs.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;

const LogKey kKey{"worker", 3, 0};

class LogArchiveTest : public testing::Test {
 protected:
  void SetUp() override {
    auto directory = TempDir::Create();
    ASSERT_TRUE(directory.ok());
    directory_.emplace(std::move(*directory));
  }
  const fs::path& dir() const { return directory_->path(); }
  fs::path archive() const { return dir() / ArchiveFileName(kKey); }

  void WriteSegment(std::string_view text) {
    auto writer = LogWriter::Open(dir(), kKey);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->Append(0, text).ok());
  }
  std::string ReadAll(size_t piece) {
    std::string all;
    while (true) {
      const auto bytes = ReadLog(dir(), kKey, static_cast<int64_t>(all.size()), piece);
      EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
      if (!bytes.ok() || bytes->empty()) return all;
      all += *bytes;
    }
  }

  std::optional<TempDir> directory_;
};

std::string Lines(size_t bytes) {
  std::mt19937 random(7);
  std::string text;
  while (text.size() < bytes)
    text += "step " + std::to_string(text.size()) + " loss=" + std::to_string(random()) + "\n";
  return text;
}

TEST_F(LogArchiveTest, ReadsAsTheSegmentDid) {
  const std::string text = Lines(3 * kArchiveFrame + 12345);
  WriteSegment(text);
  struct stat before {};
  ASSERT_EQ(::stat((dir() / LogFileName(kKey)).c_str(), &before), 0);
  const auto bytes = CompressLog(dir(), kKey);
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  EXPECT_LT(*bytes, static_cast<int64_t>(text.size()) / 2);
  EXPECT_FALSE(fs::exists(dir() / LogFileName(kKey)));
  struct stat after {};
  ASSERT_EQ(::stat(archive().c_str(), &after), 0);
  EXPECT_EQ(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
  EXPECT_EQ(after.st_mode & 0777, 0600U);
  EXPECT_EQ(ReadAll(size_t{256} << 10), text);
  EXPECT_EQ(ReadAll(70001), text);
  EXPECT_EQ(*LogSize(dir(), kKey), static_cast<int64_t>(text.size()));
  const int64_t middle = kArchiveFrame - 3;
  EXPECT_EQ(*ReadLog(dir(), kKey, middle, 3), text.substr(static_cast<size_t>(middle), 3));
  EXPECT_TRUE(ReadLog(dir(), kKey, static_cast<int64_t>(text.size()), 10)->empty());
  EXPECT_TRUE(ReadLog(dir(), kKey, -1, 10)->empty());
  // Again, after a crash that left the segment.
  WriteSegment("late");
  EXPECT_EQ(*CompressLog(dir(), kKey), *bytes);
  EXPECT_EQ(ReadAll(size_t{1} << 20), text);
}

TEST_F(LogArchiveTest, HolesKeepTheirText) {
  auto writer = LogWriter::Open(dir(), kKey);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Append(0, "begin\n").ok());
  ASSERT_TRUE(writer->Append(int64_t{5} << 20, "end\n").ok());
  const std::string before = ReadAll(size_t{256} << 10);
  ASSERT_TRUE(CompressLog(dir(), kKey).ok());
  EXPECT_EQ(ReadAll(size_t{256} << 10), before);
}

TEST_F(LogArchiveTest, TimesGoOnWorking) {
  FakeClock clock;
  clock.Advance(std::chrono::hours(24 * 365 * 30));
  LogTimesWriter times(dir() / LogTimesFileName(kKey), &clock);
  times.Note(0);
  clock.Advance(std::chrono::seconds(5));
  times.Note(100);
  WriteSegment(std::string(200, 'x'));
  const auto before = ReadLogTimes(dir(), kKey, 0);
  ASSERT_TRUE(before.ok());
  ASSERT_TRUE(CompressLog(dir(), kKey).ok());
  const auto after = ReadLogTimes(dir(), kKey, 0);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->entries, before->entries);
  EXPECT_EQ(after->entries.size(), 2U);
  EXPECT_EQ(after->modified, before->modified);
}

TEST_F(LogArchiveTest, ACoordinatorTakesItForStored) {
  WriteSegment("12345678");
  ASSERT_TRUE(CompressLog(dir(), kKey).ok());
  bool lost = false;
  TaskLogs logs(dir(), [&](const LogKey&, const Status&) { lost = true; });
  EXPECT_EQ(logs.Written(kKey, 8), 8);
  EXPECT_EQ(logs.Store(kKey, 4, "5678"), 8);
  EXPECT_TRUE(logs.Finish(kKey));
  EXPECT_FALSE(lost);
  EXPECT_FALSE(fs::exists(dir() / LogFileName(kKey)));
}

TEST_F(LogArchiveTest, DamageIsFoundWhereverItIs) {
  const std::string text = Lines(2 * kArchiveFrame + 1);
  WriteSegment(text);
  ASSERT_TRUE(CompressLog(dir(), kKey).ok());
  const auto good = ReadFile(archive(), size_t{8} << 20);
  ASSERT_TRUE(good.ok());
  std::mt19937 random(3);
  int found = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bad = *good;
    if (i % 3 == 0) {
      bad.resize(random() % bad.size());
    } else {
      // Half of them in the table.
      const size_t at = i % 3 == 1 ? random() % bad.size() : bad.size() - 1 - random() % 41;
      bad[at] = static_cast<char>(bad[at] ^ static_cast<char>(1U << random() % 8));
    }
    ASSERT_TRUE(WriteFileAtomically(archive(), bad, 0600).ok());
    std::string all;
    Status status;
    while (status.ok()) {
      const auto bytes = ReadLog(dir(), kKey, static_cast<int64_t>(all.size()), 1 << 20);
      if (bytes.ok() && bytes->empty()) break;
      if (bytes.ok()) all += *bytes;
      status = bytes.status();
    }
    // Never other bytes than those of the log. Some bits of a frame's head say nothing.
    EXPECT_TRUE(text.starts_with(all));
    if (status.ok()) {
      EXPECT_EQ(all, text) << i;
    } else {
      EXPECT_EQ(status.code(), Code::kDataLoss) << status.ToString();
    }
    found += status.ok() ? 0 : 1;
  }
  EXPECT_GT(found, 280);
}

// docs/formats/log-segments.md.
TEST_F(LogArchiveTest, WorkedExample) {
  WriteSegment("ab\n");
  EXPECT_EQ(*CompressLog(dir(), kKey), 16 + 25);
  const auto bytes = ReadFile(archive(), 100);
  ASSERT_TRUE(bytes.ok());
  const unsigned char table[] = {0x5e, 0x2a, 0x4d, 0x18, 0x11, 0, 0, 0, 0x10, 0,    0,    0,   3,
                                 0,    0,    0,    1,    0,    0, 0, 0, 0xb1, 0xea, 0x92, 0x8f};
  EXPECT_EQ(bytes->substr(16), std::string(reinterpret_cast<const char*>(table), sizeof table));
}

TEST_F(LogArchiveTest, AnEmptySegmentAndNone) {
  WriteSegment("");
  ASSERT_TRUE(CompressLog(dir(), kKey).ok());
  EXPECT_EQ(*LogSize(dir(), kKey), 0);
  EXPECT_EQ(ReadAll(10), "");
  EXPECT_EQ(CompressLog(dir(), {"worker", 4, 0}).status().code(), Code::kNotFound);
  EXPECT_EQ(ReadLog(dir(), {"worker", 4, 0}, 0, 10).status().code(), Code::kNotFound);
  EXPECT_EQ(ParseArchiveFileName("worker-3.0.log.zst"), kKey);
  EXPECT_FALSE(ParseArchiveFileName("worker-3.0.log"));
  EXPECT_FALSE(ParseLogFileName("worker-3.0.log.zst"));
}

}  // namespace
}  // namespace shoal::rendezvous
