#include "controller/schedules/schedule_record.h"

#include <fmt/format.h>

#include <utility>

#include "job/spec/cron.h"
#include "job/spec/schedule_json.h"

namespace shoal::controller {
namespace {

constexpr auto kPunctual = std::chrono::minutes(1);
// A clock that was set back by more is taken to have been wrong before.
constexpr auto kWrongClock = std::chrono::hours(24);
constexpr int64_t kMostSkipped = 100'000;  // counted
constexpr size_t kMaxActive = 1000;

int64_t MicrosOf(WallTime time) { return time.time_since_epoch().count(); }

Result<WallTime> TimeOf(const json::object& body, std::string_view field) {
  TRY_ASSIGN(const int64_t micros, GetInt(body, field));
  return WallTime(std::chrono::microseconds(micros));
}

Result<job::CronTimes> TimesOf(const job::Schedule& schedule) {
  TRY_ASSIGN(job::TimeZone zone, job::TimeZone::Load(schedule.time_zone));
  return job::CronTimes::Make(schedule.cron, std::move(zone));
}

void Skip(ScheduleDecision* decision, const std::string& why) {
  decision->due.reset();
  ++decision->skipped;
  decision->why = why;
}

}  // namespace

json::object ToJson(const ScheduleRecord& schedule) {
  json::array active;
  for (const std::string& id : schedule.active) active.emplace_back(id);
  return {{"name", schedule.name},
          {"stem", schedule.stem},
          {"source", ToJson(schedule.source)},
          {"schedule", job::EncodeSchedule(schedule.schedule)},
          {"created", MicrosOf(schedule.created)},
          {"decided", MicrosOf(schedule.decided)},
          {"active", std::move(active)},
          {"last_run", schedule.last_run},
          {"successes", schedule.successes},
          {"failures", schedule.failures},
          {"skipped", schedule.skipped},
          {"last_success", MicrosOf(schedule.last_success)},
          {"last_failure", MicrosOf(schedule.last_failure)},
          {"last_reason", schedule.last_reason}};
}

Result<ScheduleRecord> ParseSchedule(const json::object& body) {
  ScheduleRecord schedule;
  TRY_ASSIGN(schedule.name, GetString(body, "name"));
  TRY_ASSIGN(schedule.stem, GetString(body, "stem"));
  const json::object* const source = FindObject(body, "source");
  const json::object* const times = FindObject(body, "schedule");
  if (source == nullptr || times == nullptr)
    return InvalidArgument("source, schedule: expected objects");
  TRY_ASSIGN(schedule.source, ParseStoredSubmission(*source));
  TRY(job::DecodeSchedule(*times, &schedule.schedule));
  TRY_ASSIGN(schedule.created, TimeOf(body, "created"));
  TRY_ASSIGN(schedule.decided, TimeOf(body, "decided"));
  const json::value* const active = body.if_contains("active");
  if (active == nullptr || !active->is_array() || active->get_array().size() > kMaxActive)
    return InvalidArgument("active: expected an array of ids");
  for (const json::value& id : active->get_array()) {
    if (!id.is_string()) return InvalidArgument("active: expected an array of ids");
    schedule.active.emplace_back(id.get_string());
  }
  TRY_ASSIGN(schedule.last_run, GetString(body, "last_run"));
  TRY_ASSIGN(schedule.successes, GetInt(body, "successes"));
  TRY_ASSIGN(schedule.failures, GetInt(body, "failures"));
  TRY_ASSIGN(schedule.skipped, GetInt(body, "skipped"));
  TRY_ASSIGN(schedule.last_success, TimeOf(body, "last_success"));
  TRY_ASSIGN(schedule.last_failure, TimeOf(body, "last_failure"));
  TRY_ASSIGN(schedule.last_reason, GetString(body, "last_reason"));
  return schedule;
}

std::string RunId(const ScheduleRecord& schedule, WallTime due) {
  const std::string text = FormatWall(due);  // 2026-11-26T02:30:…
  return fmt::format("{}-{}{}{}t{}{}", schedule.stem, text.substr(0, 4), text.substr(5, 2),
                     text.substr(8, 2), text.substr(11, 2), text.substr(14, 2));
}

Result<ScheduleDecision> DecideSchedule(const ScheduleRecord& schedule, bool active, WallTime now) {
  ScheduleDecision decision;
  decision.decided = std::max(schedule.decided, now);
  if (schedule.decided > now + kWrongClock) decision.decided = now;
  if (!schedule.schedule.enabled) return decision;
  TRY_ASSIGN(const job::CronTimes times, TimesOf(schedule.schedule));
  for (auto next = times.Next(schedule.decided); next && *next <= now; next = times.Next(*next)) {
    if (decision.due) Skip(&decision, "it was missed, and a later time has passed");
    decision.due = next;
    if (decision.skipped >= kMostSkipped) break;
  }
  if (!decision.due) return decision;
  const auto late = now - *decision.due;
  const auto deadline = schedule.schedule.start_deadline;
  const std::string ago = FormatDuration(late);
  if (deadline.count() > 0 && late > deadline) {
    Skip(&decision, "it was missed " + ago + " ago, longer than start_deadline");
  } else if (late > kPunctual && schedule.schedule.missed == job::MissedRuns::kSkip) {
    Skip(&decision, "it was missed " + ago + " ago, and missed is skip");
  } else if (active && schedule.schedule.concurrency == job::Concurrency::kForbid) {
    Skip(&decision, "the run before is unfinished, and concurrency is forbid");
  }
  decision.replace =
      decision.due && active && schedule.schedule.concurrency == job::Concurrency::kReplace;
  return decision;
}

Result<std::optional<WallTime>> NextTime(const ScheduleRecord& schedule, WallTime now) {
  if (!schedule.schedule.enabled) return std::optional<WallTime>();
  TRY_ASSIGN(const job::CronTimes times, TimesOf(schedule.schedule));
  return times.Next(std::max(schedule.decided, now));
}

}  // namespace shoal::controller
