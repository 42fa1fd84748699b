// The time index of log segments: what is written, and what is left of it after crashes.
#include "rendezvous/logs/log_times.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "rendezvous/logs/timed_log_writer.h"

namespace shoal::rendezvous {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Can be set back, as civil time can.
class SettableClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(); }
  WallTime Wall() const override { return wall; }
  WallTime wall{seconds(1'000'000'000)};
};

class LogTimesTest : public ::testing::Test {
 protected:
  LogTimesTest() : place_(std::move(TempDir::Create()).value()) {}
  TimedLogWriter Open() {
    return std::move(TimedLogWriter::Open(place_.path(), key_, &clock_)).value();
  }
  LogTimes Read(int64_t from = 0) {
    return std::move(ReadLogTimes(place_.path(), key_, from)).value();
  }
  std::filesystem::path index() const { return place_.path() / LogTimesFileName(key_); }

  const TempDir place_;
  const LogKey key_{"worker", 3, 0};
  SettableClock clock_;
};

TEST_F(LogTimesTest, HasAnEntryForEachSecond) {
  TimedLogWriter log = Open();
  ASSERT_TRUE(log.Append(0, "one\n").ok());
  clock_.wall += milliseconds(500);
  ASSERT_TRUE(log.Append(4, "two\n").ok());
  clock_.wall += milliseconds(500);
  ASSERT_TRUE(log.Append(8, "three\n").ok());
  const LogTimes times = Read();
  ASSERT_THAT(times.entries, SizeIs(2));
  EXPECT_EQ(times.entries[0], (LogTime{0, WallTime(seconds(1'000'000'000))}));
  EXPECT_EQ(times.entries[1], (LogTime{8, WallTime(seconds(1'000'000'001))}));
  EXPECT_EQ(times.Find(7), WallTime(seconds(1'000'000'000)));
  EXPECT_EQ(times.Find(8), WallTime(seconds(1'000'000'001)));
}

TEST_F(LogTimesTest, HasAnEntryForEachPieceOfManyBytes) {
  TimedLogWriter log = Open();
  const std::string piece(size_t{32} << 10, 'x');
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(log.Append(log.size(), piece).ok());
  EXPECT_THAT(Read().entries, SizeIs(4));
}

TEST_F(LogTimesTest, RepeatedBytesHaveNoEntry) {
  TimedLogWriter log = Open();
  ASSERT_TRUE(log.Append(0, "one\n").ok());
  clock_.wall += seconds(5);
  ASSERT_TRUE(log.Append(0, "one\n").ok());
  EXPECT_THAT(Read().entries, SizeIs(1));
}

TEST_F(LogTimesTest, AClockThatIsSetBackIsSaid) {
  TimedLogWriter log = Open();
  ASSERT_TRUE(log.Append(0, "one\n").ok());
  clock_.wall -= hours(1);
  ASSERT_TRUE(log.Append(4, "two\n").ok());
  EXPECT_EQ(Read().Find(4), WallTime(seconds(1'000'000'000)) - hours(1));
}

TEST_F(LogTimesTest, ReadsFromTheEntryThatCoversAByte) {
  TimedLogWriter log = Open();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(log.Append(log.size(), "0123456789").ok());
    clock_.wall += seconds(1);
  }
  const LogTimes times = Read(505);
  ASSERT_THAT(times.entries, SizeIs(50));
  EXPECT_EQ(times.entries.front().offset, 500);
  EXPECT_FALSE(times.Find(499).has_value());
}

TEST_F(LogTimesTest, AnotherWriterGoesOn) {
  ASSERT_TRUE(Open().Append(0, "one\n").ok());
  clock_.wall += seconds(10);
  ASSERT_TRUE(Open().Append(4, "two\n").ok());
  const LogTimes times = Read();
  ASSERT_THAT(times.entries, SizeIs(2));
  EXPECT_EQ(times.entries[1], (LogTime{4, WallTime(seconds(1'000'000'010))}));
}

TEST_F(LogTimesTest, WithoutAnIndexNothingIsKnown) {
  ASSERT_TRUE(Open().Append(0, "one\n").ok());
  std::filesystem::remove(index());
  const LogTimes times = Read();
  EXPECT_THAT(times.entries, IsEmpty());
  EXPECT_GT(times.modified, WallTime(seconds(1'000'000'000)));
  EXPECT_FALSE(ReadLogTimes(place_.path(), {"worker", 4, 0}, 0).ok());
}

// What a crashed machine leaves: a torn entry, zeros, entries of bytes that were lost.
TEST_F(LogTimesTest, ATornIndexIsUsedAsFarAsItGoes) {
  {
    TimedLogWriter log = Open();
    ASSERT_TRUE(log.Append(0, "one\n").ok());
    clock_.wall += seconds(1);
    ASSERT_TRUE(log.Append(4, "two\n").ok());
  }
  const std::string whole = ReadFile(index(), 1000).value();
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    for (const size_t zeros : {0, 5, 16, 40}) {
      std::filesystem::remove(index());
      ASSERT_TRUE(
          WriteFileAtomically(index(), whole.substr(0, cut) + std::string(zeros, '\0')).ok());
      for (const LogTime& entry : Read().entries) {
        EXPECT_TRUE(entry == (LogTime{0, WallTime(seconds(1'000'000'000))}) || entry.offset == 4)
            << cut << " " << zeros;
      }
      clock_.wall = WallTime(seconds(2'000'000'000));
      TimedLogWriter log = Open();
      ASSERT_TRUE(log.Append(log.size(), "more\n").ok());
      EXPECT_EQ(Read().Find(log.size() - 1), clock_.wall) << cut << " " << zeros;
    }
  }
}

TEST_F(LogTimesTest, EntriesOfLostBytesAreReplaced) {
  {
    TimedLogWriter log = Open();
    ASSERT_TRUE(log.Append(0, "one\n").ok());
    clock_.wall += seconds(1);
    ASSERT_TRUE(log.Append(4, "two\n").ok());
  }
  std::filesystem::resize_file(place_.path() / LogFileName(key_), 4);
  EXPECT_THAT(Read().entries, SizeIs(1));
  clock_.wall += seconds(7);
  ASSERT_TRUE(Open().Append(4, "new\n").ok());
  EXPECT_EQ(Read().Find(4), WallTime(seconds(1'000'000'008)));
}

TEST_F(LogTimesTest, AnIndexThatCannotBeWrittenCostsNoLine) {
  std::filesystem::create_directory(index());
  TimedLogWriter log = Open();
  ASSERT_TRUE(log.Append(0, "one\n").ok());
  EXPECT_EQ(log.size(), 4);
  EXPECT_THAT(Read().entries, IsEmpty());
}

}  // namespace
}  // namespace shoal::rendezvous
