#include "job/spec/cron.h"

#include <algorithm>
#include <utility>

#include "job/spec/schedule.h"

namespace shoal::job {
namespace {

constexpr int64_t kDaySeconds = 86'400;
constexpr int64_t kMinuteSeconds = 60;
constexpr int64_t kMostDays = int64_t{30} * 366;

int64_t FloorDays(int64_t seconds) {
  return seconds >= 0 ? seconds / kDaySeconds : (seconds - kDaySeconds + 1) / kDaySeconds;
}

}  // namespace

Result<CronTimes> CronTimes::Make(const std::string& cron, TimeZone zone) {
  TRY_ASSIGN(const CronSets sets, ParseCron(cron));
  CronTimes times;
  times.zone_ = std::move(zone);
  for (const int minute : sets.fields[0]) times.minutes_.set(static_cast<size_t>(minute));
  for (const int hour : sets.fields[1]) times.hours_.set(static_cast<size_t>(hour));
  for (const int day : sets.fields[2]) times.days_.set(static_cast<size_t>(day));
  for (const int month : sets.fields[3]) times.months_.set(static_cast<size_t>(month));
  for (const int day : sets.fields[4]) times.weekdays_.set(static_cast<size_t>(day % 7));
  times.every_hour_ = sets.starred[1];
  times.any_day_ = sets.starred[2];
  times.any_weekday_ = sets.starred[4];
  return times;
}

// If both days are given, either of them suffices.
bool CronTimes::MatchesDate(int64_t days) const {
  const CivilDate date = DateOf(days);
  if (!months_.test(static_cast<size_t>(date.month))) return false;
  const bool day = days_.test(static_cast<size_t>(date.day));
  const bool weekday = weekdays_.test(static_cast<size_t>(WeekdayOf(days)));
  return any_day_ || any_weekday_ ? day && weekday : day || weekday;
}

std::optional<WallTime> CronTimes::Next(WallTime after) const {
  const int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(after.time_since_epoch()).count();
  const auto next = every_hour_ ? NextOnTheWall(seconds) : NextFixed(seconds);
  if (!next) return std::nullopt;
  return WallTime(std::chrono::seconds(*next));
}

std::optional<int64_t> CronTimes::NextFixed(int64_t after) const {
  const int64_t today = FloorDays(after + zone_.OffsetAt(after));
  // A time of yesterday may start today, when clocks are set at midnight.
  for (int64_t day = today - 1; day <= today + kMostDays; ++day) {
    if (!MatchesDate(day)) continue;
    std::optional<int64_t> first;
    for (int64_t minute = 0; minute < kDaySeconds / kMinuteSeconds; ++minute) {
      if (!hours_.test(static_cast<size_t>(minute / 60)) ||
          !minutes_.test(static_cast<size_t>(minute % 60)))
        continue;
      const int64_t time = zone_.TimeOf(day * kDaySeconds + minute * kMinuteSeconds);
      if (time > after && (!first || time < *first)) first = time;
    }
    if (first) return first;
  }
  return std::nullopt;
}

std::optional<int64_t> CronTimes::NextOnTheWall(int64_t after) const {
  const int64_t most = after + kMostDays * kDaySeconds;
  int64_t time = after - ((after % kMinuteSeconds) + kMinuteSeconds) % kMinuteSeconds;
  for (time += kMinuteSeconds; time <= most;) {
    const int64_t local = time + zone_.OffsetAt(time);
    const int64_t day = FloorDays(local);
    const int64_t of_day = local - day * kDaySeconds;
    if (!MatchesDate(day)) {
      // To the end of the day, but not beyond a change of the clocks before it.
      constexpr int64_t kMargin = 4 * 3600;
      time += std::max(kMinuteSeconds,
                       (kDaySeconds - of_day - kMargin) / kMinuteSeconds * kMinuteSeconds);
      continue;
    }
    const int64_t minute = of_day / kMinuteSeconds;
    if (hours_.test(static_cast<size_t>(minute / 60)) &&
        minutes_.test(static_cast<size_t>(minute % 60)))
      return time;
    time += kMinuteSeconds;
  }
  return std::nullopt;
}

}  // namespace shoal::job
