// When a job is run again and again; what of it is checked when its file is read.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"

namespace shoal::job {

enum class Concurrency : uint8_t { kForbid, kAllow };

// The block `schedule` of a job file. An empty `cron`: the job has none.
struct Schedule {
  std::string cron;
  std::string time_zone = "UTC";
  Concurrency concurrency = Concurrency::kForbid;
  std::chrono::milliseconds start_deadline{0};  // 0: the scheduler's own
  bool enabled = true;
  std::map<std::string, std::string> secrets;  // variable → where the secret store has it

  bool operator==(const Schedule&) const = default;
};

// Five fields as crontab(5) has them: lists, ranges, steps behind `*` or a range, three-letter
// names of months and days. Each of them is read alike by cron and by Metronome. InvalidArgument
// with "got …, expected …"; also for a day that no month of them has.
Status CheckCron(const std::string& cron);
// InvalidArgument for what is no name of the IANA's list as this machine has it in
// /usr/share/zoneinfo; where there is none, for what could not be one.
Status CheckTimeZone(const std::string& zone);

}  // namespace shoal::job
