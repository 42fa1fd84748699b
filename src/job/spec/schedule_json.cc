#include "job/spec/schedule_json.h"

#include "job/spec/json_fields.h"

namespace shoal::job {

json::object EncodeSchedule(const Schedule& schedule) {
  json::object secrets;
  for (const auto& [variable, source] : schedule.secrets) secrets[variable] = source;
  return {{"cron", schedule.cron},
          {"time_zone", schedule.time_zone},
          {"concurrency", NameOfValue(kConcurrencies, schedule.concurrency)},
          {"missed", NameOfValue(kMissedRuns, schedule.missed)},
          {"start_deadline_ms", schedule.start_deadline.count()},
          {"enabled", schedule.enabled},
          {"secrets", std::move(secrets)}};
}

Status DecodeSchedule(const json::object& object, Schedule* schedule) {
  TRY_ASSIGN(schedule->cron, GetString(object, "cron"));
  TRY_ASSIGN(schedule->time_zone, GetString(object, "time_zone"));
  TRY(GetEnum(object, "concurrency", kConcurrencies, &schedule->concurrency));
  if (object.contains("missed"))  // records of earlier versions have none
    TRY(GetEnum(object, "missed", kMissedRuns, &schedule->missed));
  TRY(GetMs(object, "start_deadline_ms", &schedule->start_deadline));
  TRY_ASSIGN(schedule->enabled, GetBool(object, "enabled"));
  return GetTextMap(object, "secrets", &schedule->secrets);
}

}  // namespace shoal::job
