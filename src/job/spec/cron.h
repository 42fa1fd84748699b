// The times of a schedule.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "job/spec/time_zone.h"

namespace shoal::job {

// The times of a cron expression (CheckCron) in a time zone. Immutable.
//
// As in Debian's cron: a run whose local time does not exist, since clocks are set forward, starts
// when they are set; one whose local time comes twice starts the first time. If the hour is `*` or
// `*/N`, runs follow the clock on the wall in both cases.
class CronTimes {
 public:
  // InvalidArgument as CheckCron.
  static Result<CronTimes> Make(const std::string& cron, TimeZone zone);

  // The first time after `after`; nullopt if there is none within 30 years. O(days) in between.
  std::optional<WallTime> Next(WallTime after) const;

 private:
  bool MatchesDate(int64_t days) const;
  std::optional<int64_t> NextFixed(int64_t after) const;
  std::optional<int64_t> NextOnTheWall(int64_t after) const;

  TimeZone zone_;
  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<7> weekdays_;
  bool any_day_ = false;      // the day of the month begins with *
  bool any_weekday_ = false;  // likewise
  bool every_hour_ = false;   // likewise
};

}  // namespace shoal::job
