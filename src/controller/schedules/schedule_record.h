// The record of a job that a server runs at its times (`schedule` of a job file).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "controller/groups/group_record.h"
#include "job/spec/schedule.h"

namespace shoal::controller {

// The kind of the records; the key is TEAM/NAME.
inline constexpr const char* kScheduleKind = "schedule";
// Folder of the server's state with the `tree` of schedules.
inline constexpr const char* kScheduleFolder = "schedules";
// Label of a run's job: the schedule's name.
inline constexpr const char* kScheduleLabel = "shoal.schedule";

struct ScheduleRecord {
  std::string name;
  std::string stem;  // the ids of its runs begin so
  StoredSubmission source;
  job::Schedule schedule;
  WallTime created{};
  // Times up to this one have been decided on.
  WallTime decided{};
  std::vector<std::string> active;  // ids of runs that were not seen to end
  std::string last_run;             // id
  int64_t successes = 0;
  int64_t failures = 0;  // and cancelled ones, and runs that could not be submitted
  int64_t skipped = 0;   // times without a run
  WallTime last_success{};
  WallTime last_failure{};
  std::string last_reason;  // why the last time had no run, or it failed

  std::string key() const { return source.team + "/" + name; }
};

json::object ToJson(const ScheduleRecord& schedule);
// InvalidArgument names the field that cannot be read.
Result<ScheduleRecord> ParseSchedule(const json::object& body);

// The id of the run of a time: STEM-YYYYMMDDtHHMM in UTC. A second server makes the same.
std::string RunId(const ScheduleRecord& schedule, WallTime due);

// What is to be done at a time. Plain value.
struct ScheduleDecision {
  std::optional<WallTime> due;  // of the run to start; none: no run
  bool replace = false;         // after the active ones have been stopped
  int64_t skipped = 0;          // times without a run
  std::string why;              // of the last of them
  WallTime decided{};           // new value of ScheduleRecord::decided
};

// Decides about the times in (schedule.decided, now]. Of several that have passed only the last one
// can have a run. Pure: `active`: whether an earlier run is unfinished. InvalidArgument for a
// schedule that cannot be read, for example since this machine does not know the time zone.
//
// A run is missed if its time is more than a minute ago, since no server ran or the clock jumped.
Result<ScheduleDecision> DecideSchedule(const ScheduleRecord& schedule, bool active, WallTime now);
// The next time after `now`; nullopt if it is not enabled, or never.
Result<std::optional<WallTime>> NextTime(const ScheduleRecord& schedule, WallTime now);

}  // namespace shoal::controller
