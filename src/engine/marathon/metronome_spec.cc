#include "engine/marathon/metronome_spec.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "engine/marathon/app_spec.h"

namespace shoal::engine::marathon {
namespace {

constexpr double kCpus = 0.1;
constexpr int64_t kMemoryMb = 256;
constexpr int64_t kLaunchSeconds = 3600;  // Metronome's default
constexpr int64_t kEndSeconds = 30;       // for a controller whose tasks have ended
constexpr size_t kMaxText = 1000;
constexpr size_t kMaxItems = 100'000;

// Variables with which a controller finds Marathon; no secrets.
json::object ControllerVariables(const ScheduledRun& run, const std::string& marathon_url) {
  json::object env = PassedVariables();
  env["SHOAL_HOME"] = run.home;
  env["SHOAL_MARATHON_URL"] = marathon_url;
  for (const char* name : {kDnsVariable, "SHOAL_MARATHON_CREDENTIALS"}) {
    if (const char* value = std::getenv(name); value != nullptr) env[name] = value;
  }
  return env;
}

// Constraints that select agents; those that spread instances do not apply to a single task.
json::array Placement(const std::vector<std::string>& constraints) {
  json::array placement;
  for (const std::string& text : constraints) {
    const json::array parts = Constraint(text);
    if (parts.size() < 3) continue;
    const json::string& how = parts[1].as_string();
    if (how != "LIKE" && how != "UNLIKE" && how != "IS") continue;
    placement.push_back(
        json::object{{"attribute", parts[0]}, {"operator", how}, {"value", parts[2]}});
  }
  return placement;
}

// A text for messages, on one line.
std::string Line(const json::object& object, const char* field) {
  std::string text = GetStringOr(object, field, "").substr(0, kMaxText);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

// The objects of an array that may be absent; InvalidArgument if it is not an array.
Result<std::vector<const json::object*>> Objects(const json::object& object, const char* field) {
  std::vector<const json::object*> found;
  const json::value* value = object.if_contains(field);
  if (value == nullptr || value->is_null()) return found;
  if (!value->is_array() || value->get_array().size() > kMaxItems)
    return InvalidArgument(std::string(field) + ": expected an array");
  for (const json::value& one : value->get_array()) {
    if (!one.is_object()) return InvalidArgument(std::string(field) + ": expected objects");
    found.push_back(&one.get_object());
  }
  return found;
}

// Ids become parts of request paths.
Result<std::string> IdIn(const json::object& object) {
  TRY_ASSIGN(std::string id, GetString(object, "id"));
  const bool fine = !id.empty() && id.size() <= kMaxText &&
                    std::all_of(id.begin(), id.end(), [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  if (!fine) return InvalidArgument("id: expected letters, digits, '-', '_' and '.'");
  return id;
}

Result<MetronomeJob> Decode(const json::object& object) {
  MetronomeJob job;
  TRY_ASSIGN(job.id, IdIn(object));
  ScheduleStatus& status = job.status;
  if (const json::value* labels = object.if_contains("labels");
      labels != nullptr && labels->is_object())
    status.name = Line(labels->get_object(), kScheduleLabel);
  TRY_ASSIGN(const auto schedules, Objects(object, "schedules"));
  for (const json::object* schedule : schedules) {
    if (Line(*schedule, "id") != kScheduleId) continue;
    status.cron = Line(*schedule, "cron");
    status.time_zone = Line(*schedule, "timezone");
    status.enabled = GetBoolOr(*schedule, "enabled", true);
    status.next = Line(*schedule, "nextRunAt");
  }
  TRY_ASSIGN(const auto runs, Objects(object, "activeRuns"));
  for (const json::object* run : runs) {
    TRY_ASSIGN(std::string id, IdIn(*run));
    status.active.push_back(std::move(id));
  }
  if (const json::value* history = object.if_contains("historySummary");
      history != nullptr && history->is_object()) {
    const json::object& summary = history->get_object();
    status.successes = GetIntOr(summary, "successCount", 0);
    status.failures = GetIntOr(summary, "failureCount", 0);
    status.last_success = Line(summary, "lastSuccessAt");
    status.last_failure = Line(summary, "lastFailureAt");
  }
  return job;
}

}  // namespace

std::string MetronomeId(const job::Marathon& settings, const std::string& name) {
  std::string id;
  for (const char c : GroupId(settings, name).substr(1)) id += c == '/' ? '.' : c;
  return id;
}

Result<std::string> MetronomeUrl(const std::string& given, const std::string& marathon_url) {
  if (!given.empty()) return given;
  constexpr std::string_view kService = "/service/marathon";
  std::string url = marathon_url;
  while (url.ends_with('/')) url.pop_back();
  if (url.ends_with(kService))
    return url.substr(0, url.size() - kService.size()) + "/service/metronome";
  return InvalidArgument(
      "the address of Metronome is not configured: set SHOAL_METRONOME_URL, "
      "http://leader.mesos:9000; only "
      "beside a Marathon at https://HOST/service/marathon is it known");
}

json::object MakeScheduledJob(const job::Job& job, const ScheduledRun& run,
                              const std::string& program, const std::string& marathon_url) {
  const job::Marathon& settings = job.marathon;
  const auto deadline = job.schedule.start_deadline;
  json::object what{
      {"cmd", "cd " + ShellQuote(run.work_dir) + " && exec " + QuoteProgram(program) +
                  " run --engine marathon --directory . " + ShellQuote(run.job_file)},
      {"cpus", kCpus},
      {"mem", kMemoryMb},
      {"disk", 0},
      {"maxLaunchDelay", deadline.count() > 0 ? CeilSeconds(deadline) : kLaunchSeconds},
      {"taskKillGracePeriodSeconds", CeilSeconds(job.limits.stop_grace) + kEndSeconds},
      {"restart", {{"policy", "NEVER"}}},
      {"placement", {{"constraints", Placement(settings.constraints)}}}};
  json::object env = ControllerVariables(run, marathon_url);
  if (!job.schedule.secrets.empty()) what["secrets"] = AddSecrets(job.schedule.secrets, &env);
  what["env"] = std::move(env);
  if (!settings.fetch.empty()) what["artifacts"] = Fetch(settings.fetch, program);
  if (!settings.user.empty()) what["user"] = settings.user;
  return {{"id", MetronomeId(settings, job.name)},
          {"description", "Runs the Shoal job " + job.name + " at its times"},
          {"labels", {{kScheduleLabel, job.name}, {kHomeLabel, run.home}}},
          {"run", std::move(what)}};
}

json::object MakeSchedule(const job::Schedule& schedule) {
  std::istringstream words(schedule.cron);
  std::string cron;
  for (std::string word; words >> word;) cron += (cron.empty() ? "" : " ") + word;
  json::object made{
      {"id", kScheduleId},
      {"cron", cron},
      {"timezone", schedule.time_zone},
      {"enabled", schedule.enabled},
      {"concurrencyPolicy", schedule.concurrency == job::Concurrency::kAllow ? "ALLOW" : "FORBID"}};
  if (schedule.start_deadline.count() > 0)
    made["startingDeadlineSeconds"] = CeilSeconds(schedule.start_deadline);
  return made;
}

Result<std::vector<MetronomeJob>> DecodeMetronomeJobs(std::string_view body) {
  TRY_ASSIGN(const json::value value, ParseJson(body));
  if (!value.is_array() || value.get_array().size() > kMaxItems)
    return InvalidArgument("expected an array of jobs");
  std::vector<MetronomeJob> jobs;
  for (const json::value& one : value.get_array()) {
    if (!one.is_object()) return InvalidArgument("expected objects");
    // Jobs of other programs may have other names: skip what cannot be parsed.
    auto job = Decode(one.get_object());
    if (job.ok()) jobs.push_back(std::move(*job));
  }
  return jobs;
}

Result<MetronomeJob> DecodeMetronomeJob(std::string_view body) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(body));
  return Decode(object);
}

Result<std::string> DecodeMetronomeRun(std::string_view body) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(body));
  return IdIn(object);
}

}  // namespace shoal::engine::marathon
