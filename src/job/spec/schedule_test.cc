// The times at which a job may be said to run.
#include "job/spec/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::job {
namespace {

using testing::HasSubstr;

TEST(Cron, WhatCronAndMetronomeReadAlike) {
  for (const char* good : {"* * * * *", "0 0 * * *", "*/5 * * * *", "0-59/10 0,12 1,15 1-6 *",
                           "30 2 * * mon-fri", "0 3 * JAN,jul 0", "0 0 * * 7", "  0   0 1\t* *  ",
                           "0 0 29 2 *", "0 0 31 2 1", "0 0 31 1-12/2 *", "59 23 31 12 6"}) {
    EXPECT_TRUE(CheckCron(good).ok()) << good << ": " << CheckCron(good).message();
  }
}

TEST(Cron, WhatIsWrongIsSaid) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"", "got 0 fields, expected five"},
      {"0 0 * * * *",
       "got 6 fields, expected five: minute, hour, day of the month, month, day of "
       "the week; there are no seconds"},
      {"@daily", "@daily is 0 0 * * *"},
      {"60 * * * *", "got '60' as the minute, expected numbers from 0 to 59"},
      {"* 24 * * *", "got '24' as the hour"},
      {"* * 0 * *", "as the day of the month, expected numbers from 1 to 31"},
      {"* * * 13 *", "got '13' as the month, expected numbers from 1 to 12 or names"},
      {"* * * * 8", "as the day of the week"},
      {"* * * foo *", "got 'foo' as the month"},
      {"*/0 * * * *", "got '*/0' as the minute, expected a step from 1 to 59"},
      {"*/x * * * *", "expected a step"},
      {"5/10 * * * *", "expected a step behind * or a range: 5-59/10"},
      {"*/5/2 * * * *", "or * or a range with /STEP"},
      {"* 10-2 * * *", "got '10-2' as the hour, expected a range that goes up"},
      {"1,,2 * * * *", "got '' as the minute"},
      {"-1 * * * *", "got '-1' as the minute"},
      {"* * ? * *", "got '?' as the day of the month"},
      {"* * L * *", "got 'L'"},
      {"0 0 31 2 *", "a day that one of the months '2' has; it would never run"},
      {"0 0 30,31 feb *", "it would never run"},
      {"0 0 31 2-12/2 *", ""},  // August
      {"0 0 31 4-6/2 *", "it would never run"},
      {"99999999999999999999 * * * *", "as the minute"},
  };
  for (const auto& [cron, says] : kWrong) {
    EXPECT_THAT(CheckCron(cron).message(), HasSubstr(says)) << cron;
    EXPECT_EQ(CheckCron(cron).ok(), *says == 0) << cron;
  }
}

TEST(TimeZone, IsANameOfTheList) {
  for (const char* good : {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+1"})
    EXPECT_TRUE(CheckTimeZone(good).ok()) << good;
  for (const char* bad : {"", "/etc/passwd", "../passwd", "Europe/", "Europe//Berlin", "a b", "+1"})
    EXPECT_THAT(CheckTimeZone(bad).message(), HasSubstr("such as UTC or Europe/Berlin")) << bad;
}

}  // namespace
}  // namespace shoal::job
