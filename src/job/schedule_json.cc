#include "job/schedule_json.h"

#include "job/enums.h"

namespace shoal::job {

json::object EncodeSchedule(const Schedule& schedule) {
  json::object secrets;
  for (const auto& [variable, source] : schedule.secrets) secrets[variable] = source;
  return {{"cron", schedule.cron},
          {"time_zone", schedule.time_zone},
          {"concurrency", NameIn(kConcurrencies, schedule.concurrency)},
          {"start_deadline_ms", schedule.start_deadline.count()},
          {"enabled", schedule.enabled},
          {"secrets", std::move(secrets)}};
}

Status DecodeSchedule(const json::object& object, Schedule* schedule) {
  TRY_ASSIGN(schedule->cron, GetString(object, "cron"));
  TRY_ASSIGN(schedule->time_zone, GetString(object, "time_zone"));
  TRY_ASSIGN(const std::string concurrency, GetString(object, "concurrency"));
  const auto known = ValueIn(kConcurrencies, concurrency);
  if (!known) return InvalidArgument("concurrency: got '" + concurrency + "'");
  schedule->concurrency = *known;
  TRY_ASSIGN(const int64_t deadline, GetInt(object, "start_deadline_ms"));
  if (deadline < 0) return InvalidArgument("start_deadline_ms: may not be negative");
  schedule->start_deadline = std::chrono::milliseconds(deadline);
  TRY_ASSIGN(schedule->enabled, GetBool(object, "enabled"));
  const json::value* secrets = object.if_contains("secrets");
  if (secrets == nullptr || !secrets->is_object())
    return InvalidArgument("secrets: expected an object");
  for (const auto& [variable, source] : secrets->get_object()) {
    if (!source.is_string()) return InvalidArgument("secrets: expected texts");
    schedule->secrets.emplace(std::string(variable), std::string(source.get_string()));
  }
  return Status::Ok();
}

}  // namespace shoal::job
