// Jobs that the server runs at their times.
#include <utility>

#include "api/server/handlers.h"
#include "api/server/readiness.h"
#include "api/server/submit_document.h"
#include "base/id.h"
#include "controller/schedules/job_schedules.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kAccepted = 202;

using controller::ScheduleRecord;

std::string TimeText(WallTime time) { return time > WallTime() ? FormatWall(time) : ""; }

json::object ScheduleToReply(const Backend& backend, const ScheduleRecord& schedule) {
  constexpr std::string_view kConcurrency[] = {"forbid", "allow", "replace"};
  json::array active;
  for (const std::string& id : schedule.active) active.emplace_back(id);
  const auto next = controller::NextTime(schedule, backend.clock->Wall());
  json::object reply{
      {"name", schedule.name},
      {"team", schedule.source.team},
      {"user", schedule.source.user},
      {"engine", schedule.source.engine},
      {"cron", schedule.schedule.cron},
      {"time_zone", schedule.schedule.time_zone},
      {"concurrency", kConcurrency[static_cast<size_t>(schedule.schedule.concurrency)]},
      {"missed", schedule.schedule.missed == job::MissedRuns::kSkip ? "skip" : "run_once"},
      {"enabled", schedule.schedule.enabled},
      {"next", next.ok() && *next ? FormatWall(**next) : std::string()},
      {"active", std::move(active)},
      {"last_run", schedule.last_run},
      {"successes", schedule.successes},
      {"failures", schedule.failures},
      {"skipped", schedule.skipped},
      {"last_success", TimeText(schedule.last_success)},
      {"last_failure", TimeText(schedule.last_failure)},
      {"last_reason", next.ok() ? schedule.last_reason : next.status().message()}};
  return reply;
}

// A member may change its own schedules, an operator all.
Status CheckOwner(const Call& call, const ScheduleRecord& schedule) {
  const bool own = schedule.source.user == call.principal.user;
  if (own || call.principal.RoleIn(call.team) >= Role::kOperator) return Status::Ok();
  return PermissionDenied("the scheduled job " + schedule.name + " is one of " +
                          schedule.source.user + "; the role operator in the team " + call.team +
                          " may change it");
}

void RemoveFiles(const Backend& backend, const ScheduleRecord& schedule) {
  std::error_code ignored;
  if (!schedule.source.tree.empty())
    std::filesystem::remove_all(backend.home.root() / schedule.source.tree, ignored);
}

Result<json::object> Put(const Backend& backend, const CallPtr& call, bool* fresh) {
  const std::string name = call->arguments.PathText("name");
  call->target = name;
  TRY(backend.readiness->CheckDisk());
  const auto before = backend.schedules->Get(call->team, name);
  if (before.ok()) TRY(CheckOwner(*call, *before));
  controller::StoredSubmission source = SubmissionOf(backend, *call);
  source.set.push_back("name=" + name);
  TRY_ASSIGN(PlannedDocument document, PlanDocument(backend, source));
  const job::Schedule& times = document.made.job.schedule;
  if (times.cron.empty())
    return InvalidArgument(
        "schedule: got none, expected its times, such as schedule: {cron: 30 2 * * *}");
  if (!times.secrets.empty())
    return InvalidArgument(
        Located(document, "schedule.secrets",
                "got secrets of a cluster's scheduler, expected `{secret: NAME}` "
                "in `env`, which a server gives to jobs"));
  if (source.text.size() > kMaxStoredText)
    return InvalidArgument(
        "got a file of more than 512 KiB, expected a shorter one: it is stored "
        "with the schedule");
  document.manifest = call->arguments.Text("manifest");
  if (document.manifest.empty() && !document.made.job.files.empty())
    return InvalidArgument(Located(document, "files",
                                   "the request has no manifest; upload the files first, as "
                                   "`shoal schedule` does (docs/rest.md)"));
  TRY_ASSIGN(const std::filesystem::path tree, MakeFiles(backend, document));
  if (!tree.empty()) TRY(KeepFiles(backend, tree, controller::kScheduleFolder, &source));
  ScheduleRecord schedule;
  schedule.name = name;
  schedule.stem = NewJobId(name);
  schedule.source = source;
  schedule.schedule = times;
  const auto put = backend.schedules->Put(schedule);
  if (!put.ok()) {
    RemoveFiles(backend, schedule);
    return put.status();
  }
  *fresh = *put;
  if (before.ok()) RemoveFiles(backend, *before);
  TRY_ASSIGN(const ScheduleRecord stored, backend.schedules->Get(call->team, name));
  return ScheduleToReply(backend, stored);
}

}  // namespace

void ListSchedules(const Backend& backend, const CallPtr& call) {
  const auto all = backend.schedules->List();
  if (!all.ok()) return call->answer(Problem(all.status()));
  json::array items;
  for (const ScheduleRecord& schedule : *all) {
    if (call->principal.RoleIn(schedule.source.team) == Role::kNone) continue;
    items.push_back(ScheduleToReply(backend, schedule));
  }
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

void PutSchedule(const Backend& backend, const CallPtr& call) {
  constexpr int kCreated = 201;
  bool fresh = false;
  const auto put = Put(backend, call, &fresh);
  if (!put.ok()) return call->answer(JobProblem(put.status()));
  call->answer(JsonReply(fresh ? kCreated : kOk, *put));
}

void RemoveSchedule(const Backend& backend, const CallPtr& call) {
  constexpr int kNoContent = 204;
  const std::string name = call->arguments.PathText("name");
  call->target = name;
  const auto before = backend.schedules->Get(call->team, name);
  if (!before.ok()) return call->answer(Problem(before.status()));
  if (const Status owner = CheckOwner(*call, *before); !owner.ok())
    return call->answer(Problem(owner));
  const auto removed =
      backend.schedules->Remove(call->team, name, call->arguments.Boolean("stop", false));
  if (!removed.ok()) return call->answer(Problem(removed.status()));
  RemoveFiles(backend, *removed);
  call->answer({kNoContent, {}, ""});
}

void RunSchedule(const Backend& backend, const CallPtr& call) {
  const std::string name = call->arguments.PathText("name");
  call->target = name;
  const auto schedule = backend.schedules->Get(call->team, name);
  if (!schedule.ok()) return call->answer(Problem(schedule.status()));
  if (const Status owner = CheckOwner(*call, *schedule); !owner.ok())
    return call->answer(Problem(owner));
  const auto run = backend.schedules->RunNow(call->team, name);
  if (!run.ok()) return call->answer(Problem(run.status()));
  call->answer(JsonReply(kAccepted, json::object{{"id", *run}, {"name", name}}));
}

}  // namespace shoal::api
