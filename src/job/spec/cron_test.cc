// Time zones against the C library, and the times of schedules around changes of the clocks.

#include "job/spec/cron.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>

#include "base/file.h"
#include "job/spec/schedule.h"

namespace shoal::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kZones[] = {"UTC",
                                  "Europe/Berlin",
                                  "America/New_York",
                                  "America/St_Johns",
                                  "Australia/Lord_Howe",  // half an hour
                                  "Asia/Kathmandu",
                                  "Africa/Casablanca",
                                  "America/Sao_Paulo",  // at midnight, until 2019
                                  "Pacific/Apia",       // left out a day in 2011
                                  "Antarctica/Troll",
                                  "Asia/Tehran",
                                  "Europe/Dublin"};

bool HasZones() { return std::filesystem::exists("/usr/share/zoneinfo/Europe/Berlin"); }

int64_t LibraryOffset(int64_t time) {
  const time_t seconds = time;
  struct tm local {};
  localtime_r(&seconds, &local);
  return local.tm_gmtoff;
}

TEST(TimeZone, AgreesWithTheLibrary) {
  if (!HasZones()) GTEST_SKIP() << "this machine has no time zones";
  std::mt19937_64 random(3);
  for (const char* const name : kZones) {
    const auto zone = TimeZone::Load(name);
    ASSERT_TRUE(zone.ok()) << name << ": " << zone.status().message();
    ::setenv("TZ", name, 1);
    ::tzset();
    // 1970 to 2100, the last half by the footer.
    std::uniform_int_distribution<int64_t> times(0, 4'102'444'800);
    for (int i = 0; i < 20'000; ++i) {
      const int64_t time = times(random);
      ASSERT_EQ(zone->OffsetAt(time), LibraryOffset(time)) << name << " at " << time;
      const int64_t local = time + zone->OffsetAt(time);
      bool exists = false;
      const int64_t back = zone->TimeOf(local, &exists);
      ASSERT_TRUE(exists) << name << " at " << time;
      ASSERT_EQ(back + zone->OffsetAt(back), local) << name << " at " << time;
      ASSERT_LE(back, time) << name;  // the first of two
    }
  }
  ::unsetenv("TZ");
  ::tzset();
}

TEST(TimeZone, DamagedFilesAreRefused) {
  if (!HasZones()) GTEST_SKIP() << "this machine has no time zones";
  const std::string good = *ReadFile("/usr/share/zoneinfo/Europe/Berlin", 1 << 20);
  ASSERT_TRUE(TimeZone::Parse(good).ok());
  for (size_t size = 0; size < good.size(); size += 7)
    EXPECT_FALSE(TimeZone::Parse(good.substr(0, size)).ok()) << size;
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (int n = 0; n < 3; ++n) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto zone = TimeZone::Parse(bytes);  // either way it must not crash
    if (!zone.ok()) continue;
    (void)zone->OffsetAt(static_cast<int64_t>(random()));
    (void)zone->TimeOf(static_cast<int64_t>(random()) * 3);
  }
  EXPECT_EQ(TimeZone::Load("Europe/Berlinn").status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(TimeZone::Load("../../etc/passwd").ok());
}

TEST(Dates, GoThereAndBack) {
  EXPECT_EQ(DaysOf(1970, 1, 1), 0);
  EXPECT_EQ(DaysOf(2000, 2, 29), 11'016);
  EXPECT_EQ(WeekdayOf(0), 4);  // a Thursday
  for (int64_t day = -200'000; day < 200'000; ++day) {
    const CivilDate date = DateOf(day);
    ASSERT_EQ(DaysOf(date.year, date.month, date.day), day);
    ASSERT_EQ(WeekdayOf(day + 1), (WeekdayOf(day) + 1) % 7);
  }
}

// The next times after one in RFC 3339, without microseconds.
std::vector<std::string> Times(const std::string& cron, const std::string& zone, int64_t after,
                               int count) {
  auto loaded = TimeZone::Load(zone);
  EXPECT_TRUE(loaded.ok());
  const auto times = CronTimes::Make(cron, loaded.value_or({}));
  EXPECT_TRUE(times.ok()) << times.status().message();
  std::vector<std::string> list;
  WallTime at = WallTime(std::chrono::seconds(after));
  for (int i = 0; i < count; ++i) {
    const auto next = times->Next(at);
    if (!next) {
      list.emplace_back("never");
      break;
    }
    EXPECT_GT(*next, at);
    at = *next;
    list.push_back(FormatWall(at).substr(0, 16));
  }
  return list;
}

int64_t At(int64_t year, int month, int day, int hour, int minute) {
  return DaysOf(year, month, day) * 86'400 + hour * 3600 + minute * 60;
}

TEST(CronTimes, FollowTheExpression) {
  const int64_t now = At(2026, 11, 26, 20, 0);  // a Thursday
  EXPECT_THAT(Times("30 2 * * 1-5", "UTC", now, 3),
              ElementsAre("2026-11-27T02:30", "2026-11-30T02:30", "2026-12-01T02:30"));
  EXPECT_THAT(Times("*/20 * * * *", "UTC", now + 1, 3),
              ElementsAre("2026-11-26T20:20", "2026-11-26T20:40", "2026-11-26T21:00"));
  EXPECT_THAT(Times("0 0 29 2 *", "UTC", now, 3),
              ElementsAre("2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"));
  // Both days: either.
  EXPECT_THAT(Times("0 12 13 * fri", "UTC", now, 3),
              ElementsAre("2026-11-27T12:00", "2026-12-04T12:00", "2026-12-11T12:00"));
  EXPECT_THAT(Times("5,10 0-1 1 jan,jul 7", "UTC", At(2026, 12, 31, 0, 0), 2),
              ElementsAre("2027-01-01T00:05", "2027-01-01T00:10"));
  EXPECT_THAT(Times("0 9 * * *", "America/New_York", now, 1), ElementsAre("2026-11-27T14:00"));
  EXPECT_THAT(Times("* * 30 2 mon", "UTC", now, 1), ElementsAre("2027-02-01T00:00"));
}

// Clocks in Berlin are set from 2 to 3 on 2027-03-28 at 01:00 UTC.
TEST(CronTimes, ATimeThatDoesNotExistIsTheMomentOfTheChange) {
  const int64_t before = At(2027, 3, 27, 12, 0);
  EXPECT_THAT(Times("30 2 * * *", "Europe/Berlin", before, 2),
              ElementsAre("2027-03-28T01:00", "2027-03-29T00:30"));
  // Two such times, and the one after them, are one run.
  EXPECT_THAT(Times("0,30 2,3 * * *", "Europe/Berlin", before, 3),
              ElementsAre("2027-03-28T01:00", "2027-03-28T01:30", "2027-03-29T00:00"));
  // With * the clock on the wall decides.
  EXPECT_THAT(Times("30 * * * *", "Europe/Berlin", At(2027, 3, 28, 0, 0), 3),
              ElementsAre("2027-03-28T00:30", "2027-03-28T01:30", "2027-03-28T02:30"));
}

// And from 3 to 2 on 2027-10-31 at 01:00 UTC.
TEST(CronTimes, ATimeThatComesTwiceIsTheFirst) {
  const int64_t before = At(2027, 10, 30, 12, 0);
  EXPECT_THAT(Times("30 2 * * *", "Europe/Berlin", before, 2),
              ElementsAre("2027-10-31T00:30", "2027-11-01T01:30"));
  EXPECT_THAT(
      Times("30 */1 * * *", "Europe/Berlin", At(2027, 10, 30, 23, 45), 4),
      ElementsAre("2027-10-31T00:30", "2027-10-31T01:30", "2027-10-31T02:30", "2027-10-31T03:30"));
}

// Every local minute that exists is found once a day, by a search over all times as the oracle.
TEST(CronTimes, AgreeWithASearchOverAllMinutes) {
  if (!HasZones()) GTEST_SKIP() << "this machine has no time zones";
  for (const char* const name : kZones) {
    const TimeZone zone = *TimeZone::Load(name);
    for (const char* const cron : {"15 * * * *", "*/30 */2 * * *"}) {
      const CronTimes times = *CronTimes::Make(cron, zone);
      const CronSets sets = *ParseCron(cron);
      WallTime at = WallTime(std::chrono::seconds(At(2027, 3, 1, 0, 0)));
      for (int64_t time = At(2027, 3, 1, 0, 1); time < At(2027, 11, 10, 0, 0); time += 60) {
        const int64_t minute = (time + zone.OffsetAt(time)) / 60;
        const auto has = [&](int field, int64_t number) {
          return std::ranges::find(sets.fields[static_cast<size_t>(field)], number) !=
                 sets.fields[static_cast<size_t>(field)].end();
        };
        if (!has(0, minute % 60) || !has(1, minute / 60 % 24)) continue;
        at = *times.Next(at);
        ASSERT_EQ(at, WallTime(std::chrono::seconds(time))) << name << " " << cron;
      }
    }
  }
}

// A daily run is due once a day in every zone, also where clocks are set at midnight.
TEST(CronTimes, AFixedTimeIsDueOnceADay) {
  if (!HasZones()) GTEST_SKIP() << "this machine has no time zones";
  for (const char* const name : kZones) {
    const TimeZone zone = *TimeZone::Load(name);
    for (const char* const cron : {"0 0 * * *", "30 2 * * *", "15 1 * * *", "59 23 * * *"}) {
      const CronTimes times = *CronTimes::Make(cron, zone);
      WallTime at = WallTime(std::chrono::seconds(At(2016, 1, 1, 12, 0)));
      const int64_t first = At(2016, 1, 1, 12, 0) / 86'400;
      int64_t runs = 0;
      while (true) {
        const auto next = times.Next(at);
        ASSERT_TRUE(next);
        if (*next >= WallTime(std::chrono::seconds(At(2019, 1, 1, 12, 0)))) break;
        if (runs > 0) {
          ASSERT_GT(*next - at, std::chrono::hours(20)) << name << " " << FormatWall(at);
        }
        ASSERT_LT(*next - at, std::chrono::hours(28)) << name << " " << FormatWall(at);
        at = *next;
        ++runs;
      }
      EXPECT_NEAR(static_cast<double>(runs),
                  static_cast<double>(At(2019, 1, 1, 12, 0) / 86'400 - first), 1)
          << name << " " << cron;
    }
  }
}

TEST(CronTimes, ErrorsAreThoseOfTheExpression) {
  EXPECT_THAT(CronTimes::Make("61 * * * *", {}).status().message(), StartsWith("got '61'"));
  EXPECT_THAT(CronTimes::Make("0 0 30 2 *", {}).status().message(), HasSubstr("never run"));
}

}  // namespace
}  // namespace shoal::job
