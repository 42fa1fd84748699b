// A time zone of the IANA database: its offsets from UTC at any time.
//
// Read from the machine's files (RFC 8536), since the C++ library of this compiler has no time
// zones and the C library's functions know only one for a process. Used by cron.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::job {

// Immutable; copyable. Times are seconds since the epoch.
class TimeZone {
 public:
  // UTC, without a file.
  TimeZone() = default;
  // `name`: as CheckTimeZone accepts it. NotFound if the machine has no such zone; InvalidArgument
  // for a file that cannot be read. `folder`: of the database.
  static Result<TimeZone> Load(const std::string& name,
                               const std::filesystem::path& folder = "/usr/share/zoneinfo");
  // The bytes of a file, versions 2 to 4. InvalidArgument says what is wrong. O(bytes).
  static Result<TimeZone> Parse(std::string_view bytes);

  // Seconds that local time is ahead of UTC at `time`. O(log transitions).
  int64_t OffsetAt(int64_t time) const;

  // The time of a local time, given as seconds since the epoch as if it were UTC. Of two (clocks
  // were set back) the first; for a local time that does not exist (clocks were set forward) the
  // moment at which they were set, with `exists` false.
  int64_t TimeOf(int64_t local, bool* exists = nullptr) const;

 private:
  // A day of the year and a time of it at which clocks are set.
  struct Rule {
    enum class Kind : uint8_t { kMonth, kJulian, kDay };
    Kind kind = Kind::kMonth;
    int month = 0;  // 1 to 12
    int week = 0;   // 1 to 5, the last
    int day = 0;    // of the week from 0 (Sunday), or of the year
    int64_t seconds = 7200;
  };
  // The times after the last transition (POSIX TZ).
  struct Footer {
    bool known = false;
    bool daylight = false;
    int64_t standard = 0;  // offsets
    int64_t summer = 0;
    Rule start;
    Rule end;
  };
  struct Transition {
    int64_t time = 0;
    int64_t offset = 0;  // from then on
  };
  class FooterParser;

  static int64_t DayOf(const Rule& rule, int64_t year);
  int64_t OffsetByFooter(int64_t time) const;

  int64_t first_offset_ = 0;
  std::vector<Transition> transitions_;  // ascending
  Footer footer_;
};

// Days since the epoch of a date of the Gregorian calendar, and back.
int64_t DaysOf(int64_t year, int month, int day);
struct CivilDate {
  int64_t year = 1970;
  int month = 1;
  int day = 1;
};
CivilDate DateOf(int64_t days);
// From 0, Sunday.
int WeekdayOf(int64_t days);

}  // namespace shoal::job
