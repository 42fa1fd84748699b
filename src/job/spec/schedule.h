// Recurring runs of a job, and the checks of their settings when the file is read.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::job {

enum class Concurrency : uint8_t { kForbid, kAllow, kReplace };
// What happens with runs that were due while no server ran: one starts, or none.
enum class MissedRuns : uint8_t { kRunOnce, kSkip };

// The section `schedule` of a job file. Empty `cron`: the job has no schedule.
struct Schedule {
  std::string cron;
  std::string time_zone = "UTC";
  Concurrency concurrency = Concurrency::kForbid;
  MissedRuns missed = MissedRuns::kRunOnce;
  std::chrono::milliseconds start_deadline{0};  // 0: the scheduler's default
  bool enabled = true;
  std::map<std::string, std::string> secrets;  // variable → where the secret store has it

  bool operator==(const Schedule&) const = default;
};

// Checks five fields in the syntax of crontab(5): lists, ranges, steps after `*` or a range,
// three-letter names of months and days. Accepts only what cron and Metronome read alike.
// InvalidArgument ("got …, expected …"), also for a day that none of the given months has.
Status CheckCron(const std::string& cron);
// What the five fields of an expression allow, for cron.h. A day of the week may be 7.
struct CronSets {
  std::array<std::vector<int>, 5> fields;
  std::array<bool, 5> starred{};  // the field begins with *
};
// Errors are those of CheckCron.
Result<CronSets> ParseCron(const std::string& cron);
// InvalidArgument unless the zone is in this machine's IANA database (/usr/share/zoneinfo); on a
// machine without it, unless it has the form of a zone name.
Status CheckTimeZone(const std::string& zone);

}  // namespace shoal::job
