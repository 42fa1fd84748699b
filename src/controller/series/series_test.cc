#include <fcntl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "base/file.h"
#include "controller/series/chunk.h"
#include "controller/series/segment.h"
#include "controller/series/series_files.h"
#include "controller/series/series_log.h"
#include "controller/series/series_reader.h"
#include "controller/series/series_recorder.h"
#include "net/event_loop.h"

namespace shoal::controller {
namespace {

constexpr int64_t kStart = 1'700'000'000'123;

std::vector<SeriesPoint> Noise(size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<SeriesPoint> points;
  int64_t ms = kStart;
  for (size_t i = 0; i < count; ++i) {
    ms += static_cast<int64_t>(random() % 2000) - 100;
    points.push_back({ms, static_cast<double>(random() % 1000) / 7});
  }
  return points;
}

TEST(SeriesChunk, GivesTheSamePointsBack) {
  std::vector<SeriesPoint> odd = {
      {0, 0},      {kMaxSeriesTime, -0.0},      {-kMaxSeriesTime, 1e308}, {5, -1e-308},
      {5, 5e-324}, {6, -1.7976931348623157e308}};
  for (const auto& points : {std::vector<SeriesPoint>{}, odd, Noise(5000, 1)}) {
    const auto again = DecodePoints(EncodePoints(points));
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(*again, points);
  }
}

TEST(SeriesChunk, ARegularConstantSeriesTakesTwoBitsAPoint) {
  std::vector<SeriesPoint> points;
  for (int i = 0; i < 8000; ++i) points.push_back({kStart + i * 1000, 0.25});
  EXPECT_LE(EncodePoints(points).size(), 8000 * 2 / 8 + 40);
}

TEST(SeriesChunk, BucketsKeepFloats) {
  std::vector<SeriesBucket> buckets;
  for (int i = -20; i < 500; i += 1 + (i + 30) % 3)
    buckets.push_back(
        {i * 10'000, static_cast<uint32_t>(1 + i * i % 5), 1.5 * i, 3.0 * i * i + 1e6, 2.25 * i});
  for (SeriesBucket& bucket : buckets)
    if (bucket.count == 1) bucket.min = bucket.max = bucket.mean;
  buckets.push_back({10'000'000, 7, -1e300, 1e300, 0});
  const auto again = DecodeBuckets(EncodeBuckets(buckets, 10'000), 10'000);
  ASSERT_TRUE(again.ok()) << again.status().message();
  buckets.back().min = -static_cast<double>(std::numeric_limits<float>::max());
  buckets.back().max = static_cast<double>(std::numeric_limits<float>::max());
  EXPECT_EQ(*again, buckets);
}

TEST(SeriesChunk, DamageIsAnErrorOrOtherPoints) {
  const std::string good = EncodePoints(Noise(50, 2));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(DecodePoints(good.substr(0, size)).ok()) << size;
  EXPECT_FALSE(DecodePoints("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").ok());
}

std::vector<SeriesFile> Files(const std::filesystem::path& dir) {
  return ListSeriesFiles(dir).value();
}

std::vector<SeriesInfo> List(const std::filesystem::path& dir) { return ListSeries(dir).value(); }

struct Read {
  std::vector<std::string> names;
  std::vector<std::pair<uint32_t, SeriesPoint>> points;
  size_t bytes = 0;
};

Read ReadLogBytes(const std::string& bytes) {
  Read read;
  read.bytes = *ParseSeriesLog(
      bytes, {[&](std::string_view name) { read.names.emplace_back(name); },
              [&](uint32_t number, const SeriesPoint& p) { read.points.emplace_back(number, p); }});
  return read;
}

TEST(SeriesLog, ReadsBlocksUpToATornOne) {
  SeriesLogEncoder encoder;
  std::string log = SeriesLogHeader();
  ASSERT_TRUE(encoder.Add("worker-0.loss", {kStart, 0.5}));
  ASSERT_TRUE(encoder.Add("worker-1.loss", {kStart - 7, 0.75}));
  log += encoder.TakeBlock();
  const size_t one = log.size();
  ASSERT_TRUE(encoder.Add("worker-1.loss", {kStart + 9, 0.25}));
  ASSERT_TRUE(encoder.Add("worker-1.lr", {kStart + 9, 1e-3}));
  log += encoder.TakeBlock();
  EXPECT_TRUE(encoder.TakeBlock().empty());

  const Read all = ReadLogBytes(log);
  EXPECT_EQ(all.names, (std::vector<std::string>{"worker-0.loss", "worker-1.loss", "worker-1.lr"}));
  EXPECT_EQ(all.points, (std::vector<std::pair<uint32_t, SeriesPoint>>{{0, {kStart, 0.5}},
                                                                       {1, {kStart - 7, 0.75}},
                                                                       {1, {kStart + 9, 0.25}},
                                                                       {2, {kStart + 9, 1e-3}}}));
  EXPECT_EQ(all.bytes, log.size());
  for (size_t size = one; size < log.size(); ++size) {
    const Read torn = ReadLogBytes(log.substr(0, size));
    EXPECT_EQ(torn.bytes, one);
    EXPECT_EQ(torn.points.size(), 2U);
  }
  log[one + 12] ^= 1;
  EXPECT_EQ(ReadLogBytes(log).bytes, one);
  EXPECT_FALSE(ParseSeriesLog("SHOALJNL", {}).ok());
}

class SeriesFilesTest : public testing::Test {
 protected:
  // Writes points of `series` series, one a second, into log `number`.
  void WriteLog(uint64_t number, int series, int from, int seconds) {
    auto log = SeriesLogFile::Create(SeriesLogPath(dir_, number));
    ASSERT_TRUE(log.ok()) << log.status().message();
    SeriesLogEncoder encoder;
    for (int t = from; t < from + seconds; ++t) {
      for (int s = 0; s < series; ++s)
        encoder.Add(SeriesName("worker", s, "loss"), {kStart + t * 1000, 1.0 * s + t});
      ASSERT_TRUE(log->Append(encoder.TakeBlock()).ok());
    }
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const SeriesFile& file : Files(dir_)) names.push_back(file.path.filename().string());
    return names;
  }

  const TempDir place_ = std::move(*TempDir::Create());
  const std::filesystem::path dir_ = place_.path();
};

TEST_F(SeriesFilesTest, OldPointsBecomeMinimumMaximumAndMean) {
  SeriesBudget small;
  small.most_logs = 1;
  small.levels[0] = small.levels[1] = small.levels[2] = 1;
  for (uint64_t n = 1; n <= 6; ++n) WriteLog(n, 3, static_cast<int>(n - 1) * 1000, 1000);
  ASSERT_TRUE(CompactSeries(dir_, small).ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{"3-1-5.seg", "6.log"}));
  const auto list = ListSeries(dir_);
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 3U);
  EXPECT_EQ(list->at(1).name, "worker-1.loss");
  EXPECT_EQ(list->at(1).points, 6000U);
  const auto points = ReadSeries(dir_, "worker-1.loss", {});
  ASSERT_TRUE(points.ok()) << points.status().message();
  uint64_t count = 0;
  double sum = 0;
  for (const SeriesBucket& one : *points) {
    count += one.count;
    sum += one.mean * one.count;
  }
  EXPECT_EQ(count, 6000U);
  EXPECT_NEAR(sum / 6000, 1 + 5999 / 2.0, 0.01);
  EXPECT_EQ(points->front().min, 1);
  EXPECT_EQ(points->back().max, 6000);
  EXPECT_EQ(points->back().count, 1U);  // of the log
}

TEST_F(SeriesFilesTest, AtEachLevelTheBudgetHolds) {
  SeriesBudget small;
  small.most_logs = 1;
  for (uint64_t& bytes : small.levels) bytes = 6000;
  for (uint64_t n = 1; n <= 40; ++n) {
    WriteLog(n, 5, static_cast<int>(n) * 200, 200);
    ASSERT_TRUE(CompactSeries(dir_, small).ok());
    uint64_t bytes[kSeriesLevels] = {};
    for (const SeriesFile& file : Files(dir_))
      if (file.level >= 0) bytes[file.level] += file.bytes;
    for (const uint64_t of_level : bytes) EXPECT_LE(of_level, 6000U);
  }
  const auto points = ReadSeries(dir_, "worker-0.loss", {});
  ASSERT_TRUE(points.ok());
  EXPECT_TRUE(std::ranges::is_sorted(*points, {}, &SeriesBucket::ms));
  EXPECT_EQ(points->back().max, 40 * 200 + 199);
}

TEST_F(SeriesFilesTest, ReplacedFilesAreIgnoredAndRemoved) {
  WriteLog(1, 2, 0, 100);
  WriteLog(2, 2, 100, 100);
  const std::string old = *ReadFile(SeriesLogPath(dir_, 1), 1 << 20);
  SeriesBudget small;
  small.most_logs = 1;
  ASSERT_TRUE(CompactSeries(dir_, small).ok());
  std::ofstream(SeriesLogPath(dir_, 1)) << old;  // as if a crash had kept it
  EXPECT_EQ(Names(), (std::vector<std::string>{"0-1-1.seg", "2.log"}));
  EXPECT_EQ(ReadSeries(dir_, "worker-0.loss", {})->size(), 200U);
  ASSERT_TRUE(CompactSeries(dir_, small).ok());
  EXPECT_FALSE(std::filesystem::exists(SeriesLogPath(dir_, 1)));
}

TEST_F(SeriesFilesTest, RangesAndNumbersOfPoints) {
  WriteLog(1, 1, 0, 1000);
  const auto part = ReadSeries(dir_, "worker-0.loss", {kStart + 10'000, kStart + 19'000, 0});
  EXPECT_EQ(part->size(), 10U);
  EXPECT_EQ(part->front().mean, 10);
  const auto few = ReadSeries(dir_, "worker-0.loss", {-kMaxSeriesTime, kMaxSeriesTime, 10});
  ASSERT_EQ(few->size(), 10U);
  EXPECT_EQ(few->front(), (SeriesBucket{kStart, 100, 0, 99, 49.5}));
  EXPECT_TRUE(ReadSeries(dir_, "worker-0.loss", {0, 1, 0})->empty());
  const auto unknown = ReadSeries(dir_, "worker-0.lss", {});
  EXPECT_EQ(unknown.status().code(), Code::kNotFound);
  EXPECT_NE(unknown.status().message().find("worker-0.loss"), std::string::npos);
}

TEST_F(SeriesFilesTest, ADamagedSegmentCostsItsPointsOnly) {
  WriteLog(1, 2, 0, 100);
  WriteLog(2, 2, 100, 100);
  SeriesBudget small;
  small.most_logs = 1;
  ASSERT_TRUE(CompactSeries(dir_, small).ok());
  const auto path = dir_ / "0-1-1.seg";
  const std::string good = *ReadFile(path, 1 << 20);
  for (size_t at = 0; at < good.size(); at += 11) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    ASSERT_TRUE(WriteFileAtomically(path, bad, 0600, false).ok());
    const auto zero = ReadSeries(dir_, "worker-0.loss", {});
    const auto one = ReadSeries(dir_, "worker-1.loss", {});
    ASSERT_TRUE(zero.ok() && one.ok());
    EXPECT_TRUE(zero->size() == 100 || one->size() == 100) << at;
  }
}

TEST_F(SeriesFilesTest, OneEntryIsReadAsWithAllOthers) {
  const auto place = TempDir::Create();
  ASSERT_TRUE(place.ok());
  const auto path = place->path() / "one.seg";
  auto writer = SegmentWriter::Create(path, 0);
  ASSERT_TRUE(writer.ok());
  std::vector<std::string> names;
  for (int i = 100; i < 400; ++i) names.push_back("worker-" + std::to_string(i) + ".loss");
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<SeriesBucket> buckets;
    for (size_t j = 0; j <= i; ++j)
      buckets.push_back(BucketOf({static_cast<int64_t>(1000 * j), static_cast<double>(i)}));
    ASSERT_TRUE(writer->Add(names[i], buckets).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
  const auto all = SegmentReader::Open(path);
  ASSERT_TRUE(all.ok());
  for (const std::string& name : names) {
    const auto one = SegmentReader::OpenOne(path, name);
    ASSERT_TRUE(one.ok());
    ASSERT_EQ(one->entries().size(), 1U);
    const SegmentEntry* const entry = one->Find(name);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->offset, all->Find(name)->offset);
    EXPECT_EQ(entry->last_ms, all->Find(name)->last_ms);
    EXPECT_EQ(one->Read(*entry)->size(), entry->points);
  }
  for (const char* name : {"worker-1.loss", "worker-100.los", "worker-100.losses", "z"})
    EXPECT_TRUE(SegmentReader::OpenOne(path, name)->entries().empty()) << name;
}

class SeriesRecorderTest : public testing::Test {
 protected:
  static rendezvous::JobEvent Event(rendezvous::JobEvent::Type type, int second) {
    rendezvous::JobEvent event;
    event.type = type;
    event.role = "worker";
    event.at = FormatWall(WallTime(std::chrono::milliseconds(kStart + second * 1000)));
    return event;
  }
  const TempDir place_ = std::move(*TempDir::Create());
  const std::filesystem::path dir_ = SeriesDir(place_.path());
  net::Loop loop_;
};

TEST_F(SeriesRecorderTest, KeepsNumbersOfProgressAndUsage) {
  using Type = rendezvous::JobEvent::Type;
  SeriesRecorder recorder({dir_, &loop_, RealClock::Get(), nullptr});
  recorder.AddEvent(Event(Type::kNote, 0));
  recorder.Finish();
  EXPECT_FALSE(std::filesystem::exists(dir_));
  for (int i = 0; i < 5; ++i) {
    auto progress = Event(Type::kProgress, i);
    progress.body = {{"step", i},       {"loss", 1.0 / (i + 1)}, {"rate", 500.5},
                     {"unit", "words"}, {"phase", "train"},      {"a b", 1},
                     {"done", false}};
    recorder.AddEvent(progress);
    recorder.AddEvent(progress);  // repeated to a new connection
    auto usage = Event(Type::kUsage, i);
    usage.rss_bytes = 1000 + i;
    usage.cpu_seconds = 1.5 * i;
    recorder.AddEvent(usage);
  }
  recorder.Finish();
  std::vector<std::string> names;
  for (const SeriesInfo& info : List(dir_)) names.push_back(info.name);
  EXPECT_EQ(names, (std::vector<std::string>{"worker-0.cpu_cores", "worker-0.loss",
                                             "worker-0.memory_bytes", "worker-0.step",
                                             "worker-0.words_per_second"}));
  const auto loss = *ReadSeries(dir_, "worker-0.loss", {});
  ASSERT_EQ(loss.size(), 5U);
  EXPECT_EQ(loss[4], (SeriesBucket{kStart + 4000, 1, 0.2, 0.2, 0.2}));
  const auto cpu = *ReadSeries(dir_, "worker-0.cpu_cores", {});
  ASSERT_EQ(cpu.size(), 4U);
  EXPECT_EQ(cpu[0].mean, 1.5);
}

TEST_F(SeriesRecorderTest, AnotherControllerGoesOnInAnotherLog) {
  for (int i = 0; i < 3; ++i) {
    SeriesRecorder recorder({dir_, &loop_, RealClock::Get(), nullptr});
    for (int k = i; k < i + 2; ++k) {  // the last one is repeated to the next controller
      auto progress = Event(rendezvous::JobEvent::Type::kProgress, k);
      progress.body = {{"loss", k}};
      recorder.AddEvent(progress);
    }
    recorder.Finish();
  }
  EXPECT_EQ(ListSeriesFiles(dir_)->size(), 3U);
  EXPECT_EQ(ReadSeries(dir_, "worker-0.loss", {})->size(), 4U);
}

TEST_F(SeriesRecorderTest, ManyPointsAreConverted) {
  SeriesRecorder recorder({dir_, &loop_, RealClock::Get(), nullptr});
  for (int i = 0; i < 5000; ++i) {
    auto progress = Event(rendezvous::JobEvent::Type::kProgress, i);
    for (int k = 0; k < 60; ++k) progress.body["m" + std::to_string(k)] = i * k;
    recorder.AddEvent(progress);
  }
  recorder.Finish();
  int segments = 0;
  for (const SeriesFile& file : Files(dir_)) segments += file.level == 0 ? 1 : 0;
  EXPECT_GE(segments, 1);
  const auto points = *ReadSeries(dir_, "worker-0.m59", {});
  ASSERT_EQ(points.size(), 5000U);
  EXPECT_EQ(points[4321].mean, 4321 * 59);
}

TEST_F(SeriesRecorderTest, AFullDiskCostsPointsOnly) {
  std::ofstream(dir_) << "in the way";
  SeriesRecorder recorder({dir_, &loop_, RealClock::Get(), nullptr});
  auto progress = Event(rendezvous::JobEvent::Type::kProgress, 1);
  progress.body = {{"loss", 1}};
  recorder.AddEvent(progress);
  recorder.Finish();
  std::filesystem::remove(dir_);
  progress = Event(rendezvous::JobEvent::Type::kProgress, 2);
  progress.body = {{"loss", 2}};
  recorder.AddEvent(progress);
  recorder.Finish();
  EXPECT_EQ(ReadSeries(dir_, "worker-0.loss", {})->size(), 1U);
}

}  // namespace
}  // namespace shoal::controller
