// Lines of one log as its bytes arrive, and of the logs of many jobs.
#include "controller/files/log_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "controller/files/log_lines.h"
#include "rendezvous/logs/timed_log_writer.h"

namespace shoal::controller {
namespace {

using rendezvous::LogTimes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SettableClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(); }
  WallTime Wall() const override { return wall; }
  WallTime wall{seconds(1'000'000'000)};
};

WallTime At(int64_t second) { return WallTime(seconds(1'000'000'000 + second)); }

LineFilter Grep(std::string_view text) {
  LineFilter filter;
  filter.grep = std::make_shared<const LinePattern>(std::move(LinePattern::Compile(text)).value());
  return filter;
}

Result<LogTimes> NoTimes(int64_t) { return LogTimes(); }

// The selected lines of a text that arrives in pieces.
std::vector<std::string> Scan(const LineFilter& filter, std::string_view text, size_t piece,
                              const LineScanner::TimesFrom& times = NoTimes) {
  std::vector<std::string> lines;
  LineScanner scanner(filter, false, times);
  const auto on_line = [&](const LogLine& line) {
    EXPECT_EQ(text.substr(static_cast<size_t>(line.offset), line.text.size()), line.text);
    lines.emplace_back(line.text);
    return true;
  };
  for (size_t at = 0; at < text.size(); at += piece)
    EXPECT_TRUE(scanner.Add(static_cast<int64_t>(at), text.substr(at, piece), on_line).ok());
  EXPECT_TRUE(scanner.Finish(on_line).ok());
  return lines;
}

TEST(LineScanner, LinesAreTheSameHoweverTheyArrive) {
  const std::string text = "one\ntwo\n\nthree\nno feed";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    EXPECT_THAT(Scan({}, text, piece), ElementsAre("one", "two", "", "three", "no feed"));
    EXPECT_THAT(Scan(Grep("o$"), text, piece), ElementsAre("two"));
  }
}

TEST(LineScanner, LongLinesAreCutAtTheSameBytes) {
  const std::string text = std::string(kLongestLine, 'a') + "\n" +
                           std::string(2 * kLongestLine + 5, 'b') + "\nshort\n" +
                           std::string(kLongestLine + 1, 'c');
  std::vector<size_t> expected = {kLongestLine, kLongestLine, kLongestLine, 5, 5, kLongestLine, 1};
  for (const size_t piece : {size_t{4096}, size_t{100'001}, kLongestLine, 3 * kLongestLine}) {
    std::vector<size_t> sizes;
    for (const std::string& line : Scan({}, text, piece)) sizes.push_back(line.size());
    EXPECT_EQ(sizes, expected) << piece;
  }
}

TEST(LineScanner, SelectsByTime) {
  const std::string text = "a0\na1\na2\na3\na4\n";
  LogTimes times;
  times.entries = {{3, At(1)}, {6, At(2)}, {9, At(3)}, {12, At(9'000'000)}};  // the last: of 2002
  times.modified = At(3);
  const auto from = [&](int64_t) -> Result<LogTimes> { return times; };
  LineFilter filter;
  filter.since = At(2);
  EXPECT_THAT(Scan(filter, text, 4, from), ElementsAre("a2", "a3", "a4"));
  filter.until = At(3);
  EXPECT_THAT(Scan(filter, text, 4, from), ElementsAre("a2"));
  // Without a time of its own, a line was stored at the latest with the first that has one.
  filter.since = At(1);
  EXPECT_THAT(Scan(filter, text, 4, from), ElementsAre("a0", "a1", "a2"));
  filter.since = At(8'000'000);
  filter.until = {};
  EXPECT_THAT(Scan(filter, text, 4, from), ElementsAre("a4"));
}

TEST(LineScanner, WithoutAnIndexTheLastWriteCounts) {
  const auto from = [](int64_t) -> Result<LogTimes> {
    LogTimes times;
    times.modified = At(10);
    return times;
  };
  LineFilter filter;
  filter.since = At(10);
  EXPECT_THAT(Scan(filter, "a\nb\n", 9, from), SizeIs(2));
  filter.since = At(11);
  EXPECT_THAT(Scan(filter, "a\nb\n", 9, from), IsEmpty());
}

TEST(OffsetSince, BeginsBeforeTheFirstLineThatMayBelong) {
  LogTimes times;
  times.entries = {{0, At(1)}, {10, At(2)}, {20, At(1)}, {30, At(5)}};
  const auto from = [&](int64_t) -> Result<LogTimes> { return times; };
  EXPECT_EQ(OffsetSince(from, At(0)).value(), 0);
  EXPECT_EQ(OffsetSince(from, At(2)).value(), 0);
  EXPECT_EQ(OffsetSince(from, At(3)).value(), 20);
  EXPECT_EQ(OffsetSince(from, At(9)).value(), 30);
}

class LogSearchTest : public ::testing::Test {
 protected:
  LogSearchTest() : place_(std::move(TempDir::Create()).value()) {}
  void Write(const std::string& job, const LogKey& key, const std::string& text) {
    const auto logs = place_.path() / job / "logs";
    std::filesystem::create_directories(logs);
    auto log = std::move(rendezvous::TimedLogWriter::Open(logs, key, &clock_)).value();
    ASSERT_TRUE(log.Append(log.size(), text).ok());
    if (std::ranges::find(jobs_, job) == jobs_.end()) jobs_.push_back(job);
  }
  // Pages of two jobs, newest first.
  LogSearch::NextSources Sources() {
    return [this](const std::string& cursor) -> Result<LogSources> {
      LogSources sources;
      const size_t begin = cursor.empty() ? 0 : std::stoul(cursor);
      for (size_t i = begin; i < std::min(begin + 2, jobs_.size()); ++i) {
        const std::string& job = jobs_[jobs_.size() - 1 - i];
        sources.jobs.push_back({job, place_.path() / job});
      }
      if (begin + 2 < jobs_.size()) sources.next = std::to_string(begin + 2);
      return sources;
    };
  }
  static std::string Text(const FoundLine& found) {
    return std::string(found.job) + " " + found.key.role + std::to_string(found.key.index) + "." +
           std::to_string(found.key.attempt) + " " + std::string(found.line.text);
  }
  std::vector<std::string> Search(const LineFilter& filter, const LogSelection& selection = {}) {
    std::vector<std::string> lines;
    LogSearch search(Sources(), filter, selection, false);
    while (search
               .Step(1,
                     [&](const FoundLine& found) {
                       lines.push_back(Text(found));
                       return true;
                     })
               .value()) {
    }
    return lines;
  }
  void WriteFiveJobs() {
    for (int i = 0; i < 5; ++i) {
      const std::string job = "job" + std::to_string(i);
      Write(job, {"worker", 0, 0}, "x1\nno\n");
      Write(job, {"worker", 1, 0}, "no\n");
      Write(job, {"worker", 1, 1}, "no\nx2\nx3");
    }
  }

  const TempDir place_;
  SettableClock clock_;
  std::vector<std::string> jobs_;  // oldest first
};

TEST_F(LogSearchTest, FindsLinesOfAllAttemptsNewestJobFirst) {
  WriteFiveJobs();
  const auto lines = Search(Grep("x"));
  ASSERT_THAT(lines, SizeIs(15));
  EXPECT_EQ(lines[0], "job4 worker0.0 x1");
  EXPECT_EQ(lines[1], "job4 worker1.1 x2");
  EXPECT_EQ(lines[2], "job4 worker1.1 x3");
  EXPECT_EQ(lines[14], "job0 worker1.1 x3");
  EXPECT_THAT(Search(Grep("x"), {.role = "worker", .index = 0, .attempt = {}}), SizeIs(5));
  EXPECT_THAT(Search(Grep("x"), {.role = "ps", .index = {}, .attempt = {}}), IsEmpty());
}

// Each search ends after one line, and another one goes on from its position.
TEST_F(LogSearchTest, GoesOnFromAPosition) {
  WriteFiveJobs();
  const auto expected = Search(Grep("x"));
  for (const int64_t bytes : {int64_t{1}, int64_t{1} << 20}) {
    std::vector<std::string> lines;
    std::string position;
    for (bool more = true; more;) {
      LogSearch search(Sources(), Grep("x"), {}, false);
      if (!position.empty()) {
        ASSERT_TRUE(search.Resume(position).ok());
      }
      more = search
                 .Step(bytes,
                       [&](const FoundLine& found) {
                         lines.push_back(Text(found));
                         return false;
                       })
                 .value();
      position = search.position();
      ASSERT_LE(lines.size(), expected.size()) << position;
    }
    EXPECT_EQ(lines, expected);
  }
}

TEST_F(LogSearchTest, LogsThatAreRemovedAreSkipped) {
  WriteFiveJobs();
  std::vector<std::string> lines;
  LogSearch search(Sources(), Grep("x"), {}, false);
  ASSERT_TRUE(search
                  .Step(1,
                        [&](const FoundLine& found) {
                          lines.push_back(Text(found));
                          return false;
                        })
                  .value());
  std::filesystem::remove_all(place_.path() / "job4");
  std::filesystem::remove_all(place_.path() / "job3");
  while (search
             .Step(1 << 20,
                   [&](const FoundLine& found) {
                     lines.push_back(Text(found));
                     return true;
                   })
             .value()) {
  }
  EXPECT_THAT(lines, SizeIs(1 + 9));
}

TEST_F(LogSearchTest, SelectsByTime) {
  Write("old", {"worker", 0, 0}, "x old\n");
  clock_.wall += seconds(100);
  Write("new", {"worker", 0, 0}, "x early\n");
  clock_.wall += seconds(100);
  Write("new", {"worker", 0, 0}, "x late\n");
  LineFilter filter = Grep("x");
  filter.since = At(150);
  EXPECT_THAT(Search(filter), ElementsAre("new worker0.0 x late"));
  filter.since = At(50);
  filter.until = At(150);
  EXPECT_THAT(Search(filter), ElementsAre("new worker0.0 x early"));
}

TEST_F(LogSearchTest, ForgedPositionsAreRefused) {
  for (const char* const text : {"", ";", "a;b", "a;b;c;d", ";job;worker-0.0.log;-1",
                                 ";job;worker-0.0.log;9999999999999999999", ";job;../x;0"}) {
    LogSearch search(Sources(), {}, {}, false);
    EXPECT_FALSE(search.Resume(text).ok()) << text;
  }
}

}  // namespace
}  // namespace shoal::controller
