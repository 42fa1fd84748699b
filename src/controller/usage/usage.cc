#include "controller/usage/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "job/execution/state.h"
#include "job/spec/json.h"
#include "queue/core/job_spec.h"

namespace shoal::controller {
namespace {

constexpr int kEventsAtOnce = 1000;
constexpr int kJobsAtOnce = 1000;
constexpr const char* kKind = "usage";
constexpr const char* kLastJob = "last_job";
constexpr const char* kTotals = "totals";
constexpr double kMillisPerHour = 3'600'000;

// What one unit of each resource of a row is, in units of queue::Amounts: a core, a byte, a GPU.
constexpr HeldAmounts kUnits = {1000, 1.0 / 1024, 1000};
constexpr const char* kFields[queue::kResources] = {"cpu_hours", "memory_byte_hours", "gpu_hours"};

WallTime BeginOf(Month month) {
  using namespace std::chrono;
  const year_month_day first{year(month.number / 12),
                             std::chrono::month(static_cast<unsigned>(month.number % 12) + 1),
                             day(1)};
  return WallTime(duration_cast<WallTime::duration>(sys_days(first).time_since_epoch()));
}

double MillisBetween(WallTime from, WallTime to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

void AddTo(HeldAmounts* sum, const queue::Amounts& amounts, double factor) {
  for (size_t r = 0; r < queue::kResources; ++r)
    (*sum)[r] += static_cast<double>(amounts[r]) * factor;
}

json::object HoursOf(const HeldAmounts& amounts) {
  json::object object;
  for (size_t r = 0; r < queue::kResources; ++r)
    object[kFields[r]] = amounts[r] / kUnits[r] / kMillisPerHour;
  return object;
}

HeldAmounts ParseHours(const json::object& object) {
  HeldAmounts amounts{};
  for (size_t r = 0; r < queue::kResources; ++r) {
    // A whole number of hours is an integer in JSON.
    const double hours =
        GetDoubleOr(object, kFields[r], static_cast<double>(GetIntOr(object, kFields[r], 0)));
    amounts[r] = hours * kUnits[r] * kMillisPerHour;
  }
  return amounts;
}

HeldAmounts ParsePart(const json::object& object, std::string_view field) {
  const json::value* const part = object.if_contains(field);
  return part != nullptr && part->is_object() ? ParseHours(part->get_object()) : HeldAmounts{};
}

std::string RecordKey(const UsageKey& key) {
  return fmt::format("{}\t{}\t{}\t{}\t{}", MonthText(key.month), key.team, key.user, key.queue,
                     key.engine);
}

Result<UsageTable> UsageOfJob(Store* store, const JobRecord& job, WallTime now) {
  UsageCounter counter(job);
  int64_t after = 0;
  while (true) {
    TRY_ASSIGN(const std::vector<Event> events, store->ReadEvents(job.id, after, kEventsAtOnce));
    for (const Event& event : events) counter.Add(event);
    if (events.size() < static_cast<size_t>(kEventsAtOnce)) break;
    after = events.back().seq;
  }
  return counter.Finish(now);
}

bool Wanted(const UsageQuery& query, const UsageKey& key) {
  return key.month >= query.first && key.month <= query.last &&
         (query.teams.empty() || std::ranges::find(query.teams, key.team) != query.teams.end());
}

Status AddJobs(Store* store, const UsageQuery& query, WallTime now, UsageTable* table) {
  JobFilter filter;
  filter.teams = query.teams;
  filter.until = BeginOf({query.last.number + 1});
  std::string cursor;
  do {
    TRY_ASSIGN(const JobPage page, store->ListPage(filter, cursor, kJobsAtOnce));
    for (const JobSummary& summary : page.jobs) {
      if (job::IsFinal(summary.state) && summary.ended < BeginOf(query.first)) continue;
      const Result<JobRecord> job = store->GetJob(summary.id);
      if (job.status().code() == Code::kNotFound) continue;  // removed meanwhile
      TRY(job.status());
      TRY_ASSIGN(const UsageTable one, UsageOfJob(store, *job, now));
      for (const auto& [key, totals] : one)
        if (Wanted(query, key)) (*table)[key] += totals;
    }
    cursor = page.next;
  } while (!cursor.empty());
  return Status::Ok();
}

Status AddRemoved(Store* store, const UsageQuery& query, UsageTable* table) {
  for (Month month = query.first; month <= query.last; ++month.number) {
    std::string after;
    do {
      TRY_ASSIGN(const RecordPage page,
                 store->records().List(kKind, MonthText(month) + "\t", after, kJobsAtOnce));
      for (const Record& record : page.records) {
        const json::value* const totals = record.body.if_contains(kTotals);
        if (totals == nullptr || !totals->is_object()) continue;
        TRY_ASSIGN(const auto row, ParseUsageRow(totals->get_object()));
        if (Wanted(query, row.first)) (*table)[row.first] += row.second;
      }
      after = page.next;
    } while (!after.empty());
  }
  return Status::Ok();
}

// What becomes of the record of `key`; none if the job is in it already.
Result<std::optional<RecordChange>> Added(Store* store, const UsageKey& key, UsageTotals totals,
                                          const std::string& id) {
  RecordChange change{kKind, RecordKey(key), json::object(), kAbsent};
  const Result<Record> before = store->records().Get(kKind, change.key);
  if (before.ok()) {
    if (GetStringOr(before->body, kLastJob, "") == id) return std::optional<RecordChange>();
    const json::value* const kept = before->body.if_contains(kTotals);
    if (kept != nullptr && kept->is_object()) {
      TRY_ASSIGN(const auto row, ParseUsageRow(kept->get_object()));
      totals += row.second;
    }
    change.expected = before->version;
  } else if (before.status().code() != Code::kNotFound) {
    return before.status();
  }
  change.body = json::object{{kLastJob, id}, {kTotals, ToJson(key, totals)}};
  return std::optional<RecordChange>(std::move(change));
}

}  // namespace

std::string MonthText(Month month) {
  return fmt::format("{:04}-{:02}", month.number / 12, month.number % 12 + 1);
}

Result<Month> ParseMonth(std::string_view text) {
  int year = 0;
  int month = 0;
  const char* const begin = text.data();
  const bool form = text.size() == 7 && text[4] == '-' &&
                    std::from_chars(begin, begin + 4, year).ptr == begin + 4 &&
                    std::from_chars(begin + 5, begin + 7, month).ptr == begin + 7;
  if (!form || year < 1970 || month < 1 || month > 12)
    return InvalidArgument("got '" + std::string(text.substr(0, 40)) +
                           "', expected a month such as 2026-11");
  return Month{year * 12 + month - 1};
}

Month MonthOf(WallTime time) {
  using namespace std::chrono;
  const year_month_day day(floor<days>(sys_time<WallTime::duration>(time.time_since_epoch())));
  return Month{static_cast<int>(day.year()) * 12 +
               static_cast<int>(static_cast<unsigned>(day.month())) - 1};
}

Status CheckUsageQuery(const UsageQuery& query) {
  if (query.last < query.first)
    return InvalidArgument("the last month, " + MonthText(query.last) + ", is before the first, " +
                           MonthText(query.first));
  if (query.last.number - query.first.number >= kMostMonths)
    return InvalidArgument("expected at most " + std::to_string(kMostMonths) + " months, got " +
                           MonthText(query.first) + " to " + MonthText(query.last));
  return Status::Ok();
}

UsageTotals& UsageTotals::operator+=(const UsageTotals& other) {
  jobs += other.jobs;
  task_ms += other.task_ms;
  for (size_t r = 0; r < queue::kResources; ++r) {
    held[r] += other.held[r];
    idle[r] += other.idle[r];
    failed[r] += other.failed[r];
  }
  return *this;
}

UsageCounter::UsageCounter(const JobRecord& job)
    : key_{{}, job.team, job.user, GetStringOr(job.job, "queue", "default"), job.engine},
      failed_(job.state == JobState::kFailed) {
  const Result<job::Job> parsed = job::FromJson(job.job);
  if (!parsed.ok()) return;  // an unreadable record holds nothing that could be counted
  for (const job::Role& role : parsed->roles)
    roles_.push_back({role.name, queue::AmountsOf(role.resources), role.replicas});
}

void UsageCounter::Add(const Event& event) {
  if (ended_) return;
  Advance(event.time);
  if (event.type == "admitted" || event.type == "starting" || event.type == "running") {
    holds_ = true;
  } else if (event.type == "suspended" || event.type == "submitted" || event.type == "ended") {
    holds_ = false;
    ended_ = event.type == "ended";
    for (Role& role : roles_) role.running.clear();
  } else if (event.type == "task") {
    SetTask(event.body);
  } else if (event.type == "resized" || event.type == "note") {
    SetReplicas(event.body);
  }
}

UsageTable UsageCounter::Finish(WallTime now) {
  if (!ended_) Advance(now);
  return std::move(table_);
}

void UsageCounter::Advance(WallTime to) {
  const WallTime from = at_;
  // A clock that was set back counts nothing twice.
  if (to <= from) return;
  at_ = to;
  if (holds_) Credit(from, to);
}

void UsageCounter::Credit(WallTime from, WallTime to) {
  while (from < to) {
    key_.month = MonthOf(from);
    const WallTime until = std::min(to, BeginOf({key_.month.number + 1}));
    const double millis = MillisBetween(from, until);
    UsageTotals& totals = table_[key_];
    totals.jobs = 1;
    for (const Role& role : roles_) {
      const auto tasks = static_cast<double>(role.tasks);
      const auto running = static_cast<double>(role.running.size());
      totals.task_ms += tasks * millis;
      AddTo(&totals.held, role.task, tasks * millis);
      AddTo(&totals.idle, role.task, std::max(0.0, tasks - running) * millis);
      if (failed_) AddTo(&totals.failed, role.task, tasks * millis);
    }
    from = until;
  }
}

void UsageCounter::SetTask(const json::object& body) {
  const Result<TaskRecord> task = ParseTask(body);
  if (!task.ok()) return;
  for (Role& role : roles_) {
    if (role.name != task->role) continue;
    if (task->state == job::TaskState::kRunning) {
      role.running[task->index] = true;
    } else {
      role.running.erase(task->index);
    }
  }
}

void UsageCounter::SetReplicas(const json::object& body) {
  const std::string name = GetStringOr(body, "role", "");
  const int64_t replicas = GetIntOr(body, "replicas", -1);
  for (Role& role : roles_)
    if (role.name == name && replicas >= 0) role.tasks = replicas;
}

Result<UsageTable> ReadUsage(Store* store, const UsageQuery& query, WallTime now) {
  UsageTable table;
  TRY(AddRemoved(store, query, &table));
  TRY(AddJobs(store, query, now, &table));
  return table;
}

Status KeepUsage(Store* store, const std::string& id, WallTime now) {
  constexpr int kTries = 20;  // other jobs may be removed at the same time
  const Result<JobRecord> job = store->GetJob(id);
  if (job.status().code() == Code::kNotFound) return Status::Ok();
  TRY(job.status());
  TRY_ASSIGN(const UsageTable table, UsageOfJob(store, *job, now));
  Status last;
  for (int i = 0; i < kTries; ++i) {
    std::vector<RecordChange> changes;
    for (const auto& [key, totals] : table) {
      TRY_ASSIGN(auto change, Added(store, key, totals, id));
      if (change) changes.push_back(std::move(*change));
    }
    if (changes.empty()) return Status::Ok();
    last = store->records().Apply(changes, now).status();
    if (last.code() != Code::kAborted && last.code() != Code::kAlreadyExists) return last;
  }
  return last;
}

json::object ToJson(const UsageKey& key, const UsageTotals& totals) {
  json::object object{{"month", MonthText(key.month)},
                      {"team", key.team},
                      {"user", key.user},
                      {"queue", key.queue},
                      {"engine", key.engine},
                      {"jobs", totals.jobs},
                      {"task_hours", totals.task_ms / kMillisPerHour}};
  object["held"] = HoursOf(totals.held);
  object["idle"] = HoursOf(totals.idle);
  object["failed"] = HoursOf(totals.failed);
  return object;
}

Result<std::pair<UsageKey, UsageTotals>> ParseUsageRow(const json::object& object) {
  std::pair<UsageKey, UsageTotals> row;
  TRY_ASSIGN(const std::string month, GetString(object, "month"));
  TRY_ASSIGN(row.first.month, ParseMonth(month));
  row.first.team = GetStringOr(object, "team", "");
  row.first.user = GetStringOr(object, "user", "");
  row.first.queue = GetStringOr(object, "queue", "");
  row.first.engine = GetStringOr(object, "engine", "");
  row.second.jobs = GetIntOr(object, "jobs", 0);
  row.second.task_ms =
      kMillisPerHour *
      GetDoubleOr(object, "task_hours", static_cast<double>(GetIntOr(object, "task_hours", 0)));
  row.second.held = ParsePart(object, "held");
  row.second.idle = ParsePart(object, "idle");
  row.second.failed = ParsePart(object, "failed");
  return row;
}

}  // namespace shoal::controller
