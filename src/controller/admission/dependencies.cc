#include "controller/admission/dependencies.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "job/execution/state.h"

namespace shoal::controller {
namespace {

constexpr int kNamePages = 20;
constexpr int kNamePage = 1000;

// A job or a group that another job waits for.
struct FoundDependency {
  std::string id;
  std::string team;
  JobState state = JobState::kPending;
  std::string reason;
  WallTime submitted{};
};

Result<std::optional<FoundDependency>> FindGroupById(Store* store, const std::string& id) {
  if (id.size() > kMaxRecordKey) return std::optional<FoundDependency>();
  const Result<Record> record = store->records().Get(kGroupKind, id);
  if (record.status().code() == Code::kNotFound) return std::optional<FoundDependency>();
  TRY(record.status());
  FoundDependency found;
  found.id = id;
  found.team = GetStringOr(record->body, "team", "");
  const std::string state = GetStringOr(record->body, "state", "");
  found.state = job::ParseJobState(state).value_or(JobState::kRunning);
  found.reason = GetStringOr(record->body, "reason", "");
  return std::optional(std::move(found));
}

Result<std::optional<FoundDependency>> FindById(Store* store, const std::string& id) {
  const Result<JobRecord> job = store->GetJob(id);
  if (job.ok())
    return std::optional(FoundDependency{id, job->team, job->state, job->reason, job->submitted});
  if (job.status().code() != Code::kNotFound) return job.status();
  return FindGroupById(store, id);
}

// The newest job of the team with this name.
Result<std::optional<FoundDependency>> FindJobByName(Store* store, const std::string& team,
                                                     const std::string& name) {
  JobFilter filter;
  filter.name_prefix = name;
  if (!team.empty()) filter.teams = {team};
  std::string after;
  for (int page = 0; page < kNamePages; ++page) {
    TRY_ASSIGN(const JobPage jobs, store->ListPage(filter, after, kNamePage));
    for (const JobSummary& job : jobs.jobs) {
      if (job.name == name)
        return std::optional(
            FoundDependency{job.id, job.team, job.state, job.reason, job.submitted});
    }
    if (jobs.next.empty()) break;
    after = jobs.next;
  }
  return std::optional<FoundDependency>();
}

// The newest group of the team with this name.
Result<std::optional<FoundDependency>> FindGroupByName(Store* store, const std::string& team,
                                                       const std::string& name) {
  std::optional<FoundDependency> newest;
  int64_t newest_time = 0;
  std::string after;
  do {
    TRY_ASSIGN(const RecordPage page, store->records().List(kGroupKind, "", after, kNamePage));
    for (const Record& record : page.records) {
      if (GetStringOr(record.body, "name", "") != name ||
          GetStringOr(record.body, "team", "") != team)
        continue;
      const int64_t submitted = GetInt(record.body, "submitted").value_or(0);
      if (newest && submitted < newest_time) continue;
      TRY_ASSIGN(newest, FindGroupById(store, record.key));
      newest_time = submitted;
      if (newest) newest->submitted = WallTime(std::chrono::microseconds(submitted));
    }
    after = page.next;
  } while (!after.empty());
  return newest;
}

std::string_view WordOf(job::DependencyWhen when) {
  constexpr std::string_view kWords[] = {"succeeds", "fails", "ends"};
  return kWords[static_cast<size_t>(when)];
}

bool IsMet(job::DependencyWhen when, JobState state) {
  if (when == job::DependencyWhen::kEnded) return job::IsFinal(state);
  // A cancelled job has neither succeeded nor failed.
  return state ==
         (when == job::DependencyWhen::kSucceeded ? JobState::kSucceeded : JobState::kFailed);
}

// Why the condition can no longer be met; empty if it can.
std::string NeverOf(const job::Dependency& one, const FoundDependency& found) {
  if (!job::IsFinal(found.state) || IsMet(one.when, found.state)) return "";
  return "it was to start after " + one.job + " " +
         (one.when == job::DependencyWhen::kFailed ? "failed" : "succeeded") + ", which has " +
         (found.state == JobState::kCancelled ? "been cancelled"
                                              : std::string(job::NameOf(found.state))) +
         (found.reason.empty() || found.state == JobState::kSucceeded ? "" : ": " + found.reason);
}

}  // namespace

Result<DependencyAnswer> AskDependencies(Store* store, const std::vector<job::Dependency>& after) {
  DependencyAnswer answer;
  size_t waits = 0;
  for (const job::Dependency& one : after) {
    TRY_ASSIGN(const std::optional<FoundDependency> found, FindById(store, one.job));
    if (!found) {
      if (one.when == job::DependencyWhen::kEnded) continue;
      answer.never = "it was to start after " + one.job + " " +
                     (one.when == job::DependencyWhen::kFailed ? "failed" : "succeeded") +
                     ", whose record has been removed";
      return answer;
    }
    if (IsMet(one.when, found->state)) continue;
    answer.never = NeverOf(one, *found);
    if (!answer.never.empty()) return answer;
    if (waits++ == 0)
      answer.waits_for = one.job + ", which is " + std::string(job::NameOf(found->state)) +
                         ": it starts when that one " + std::string(WordOf(one.when));
  }
  if (waits > 1)
    answer.waits_for +=
        "; and for " + std::to_string(waits - 1) + (waits == 2 ? " other job" : " other jobs");
  answer.met = waits == 0;
  return answer;
}

Status ResolveDependencies(Store* store, const std::string& team,
                           std::vector<job::Dependency>* after) {
  for (job::Dependency& one : *after) {
    TRY_ASSIGN(std::optional<FoundDependency> found, FindById(store, one.job));
    if (found && found->team != team) found.reset();
    if (!found) {
      TRY_ASSIGN(found, FindJobByName(store, team, one.job));
      TRY_ASSIGN(const auto group, FindGroupByName(store, team, one.job));
      if (group && (!found || found->submitted < group->submitted)) found = group;
    }
    if (!found)
      return InvalidArgument("after: got " + one.job + ", expected the ID or the name of a job" +
                             (team.empty() ? "" : " of the team " + team) +
                             "; `shoal jobs` lists them");
    one.job = found->id;
    const std::string never = NeverOf(one, *found);
    if (!never.empty()) return InvalidArgument("after: the job would never start: " + never);
  }
  return Status::Ok();
}

}  // namespace shoal::controller
