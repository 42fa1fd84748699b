#include "controller/schedules/job_schedules.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "job/execution/state.h"

namespace shoal::controller {
namespace {

constexpr int kSchedulePage = 100;
// Interval at which all schedules are read, not only those that are due.
constexpr auto kLookInterval = std::chrono::seconds(10);
constexpr auto kTryAgain = std::chrono::seconds(5);
constexpr int64_t kMostOfTeam = 1000;
constexpr size_t kMostActive = 100;

bool MayBeTriedAgain(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kResourceExhausted ||
         status.code() == Code::kAborted;
}

// How a run has ended; nullopt while it has not. A removed one has.
struct RunEnd {
  JobState state = JobState::kCancelled;
  std::string reason = "its record was removed";
  WallTime time{};
};

Result<std::optional<RunEnd>> FindEnd(Store* store, const std::string& id) {
  const Result<JobRecord> job = store->GetJob(id);
  if (job.ok()) {
    if (!job::IsFinal(job->state)) return std::optional<RunEnd>();
    return std::optional(RunEnd{job->state, job->reason, job->ended});
  }
  if (job.status().code() != Code::kNotFound) return job.status();
  const Result<Record> record = store->records().Get(kGroupKind, id);
  if (record.status().code() == Code::kNotFound) return std::optional(RunEnd());
  TRY(record.status());
  TRY_ASSIGN(const GroupRecord group, ParseGroup(id, record->body));
  if (!job::IsFinal(group.state)) return std::optional<RunEnd>();
  return std::optional(RunEnd{group.state, group.reason, group.ended});
}

}  // namespace

Result<std::unique_ptr<JobSchedules>> JobSchedules::Start(JobSchedulesOptions options, bool run) {
  std::unique_ptr<JobSchedules> schedules(new JobSchedules(std::move(options)));
  if (run) schedules->thread_ = std::thread([raw = schedules.get()] { raw->Loop(); });
  return schedules;
}

JobSchedules::~JobSchedules() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void JobSchedules::Loop() {
  MutexLock lock(mu_);
  while (!stopping_) {
    lock.unlock();
    Tick();
    lock.lock();
    changed_.wait_for(lock, options_.tick, [this]() REQUIRES(mu_) { return stopping_; });
  }
}

Status JobSchedules::Store(const ScheduleRecord& schedule) {
  return options_.store->records()
      .Put(kScheduleKind, schedule.key(), ToJson(schedule), kAnyVersion, options_.clock->Wall())
      .status();
}

Result<std::vector<ScheduleRecord>> JobSchedules::List() {
  std::vector<ScheduleRecord> list;
  std::string after;
  do {
    TRY_ASSIGN(const RecordPage page,
               options_.store->records().List(kScheduleKind, "", after, kSchedulePage));
    for (const Record& record : page.records) {
      Result<ScheduleRecord> schedule = ParseSchedule(record.body);
      if (schedule.ok()) {
        list.push_back(std::move(*schedule));
      } else {
        LogWarning("schedule {}: its record cannot be read: {}", record.key,
                   schedule.status().message());
      }
    }
    after = page.next;
  } while (!after.empty());
  return list;
}

Result<ScheduleRecord> JobSchedules::Get(const std::string& team, const std::string& name) {
  const Result<Record> record = options_.store->records().Get(kScheduleKind, team + "/" + name);
  if (record.status().code() == Code::kNotFound)
    return NotFound("the team " + team + " has no scheduled job " + name +
                    "; `shoal schedule --list` shows them");
  TRY(record.status());
  return ParseSchedule(record->body);
}

// A team cannot fill the server with schedules.
Status JobSchedules::CheckCount(const std::string& team) {
  TRY_ASSIGN(const std::vector<ScheduleRecord> all, List());
  const auto count = std::ranges::count_if(
      all, [&](const ScheduleRecord& schedule) { return schedule.source.team == team; });
  if (count < kMostOfTeam) return Status::Ok();
  return FailedPrecondition("the team " + team + " has " + std::to_string(count) +
                            " scheduled jobs, the most that a team may have; remove one first");
}

Result<bool> JobSchedules::Put(ScheduleRecord schedule) {
  const MutexLock lock(work_);
  const WallTime now = options_.clock->Wall();
  schedule.created = now;
  schedule.decided = now;
  TRY(NextTime(schedule, now).status());
  const Result<ScheduleRecord> before = Get(schedule.source.team, schedule.name);
  if (!before.ok() && before.status().code() != Code::kNotFound) return before.status();
  if (!before.ok()) TRY(CheckCount(schedule.source.team));
  if (before.ok()) {
    ScheduleRecord kept = *before;
    kept.source = schedule.source;
    kept.schedule = schedule.schedule;
    kept.decided = now;
    schedule = std::move(kept);
  }
  TRY(Store(schedule));
  looked_ = WallTime();  // the next tick reads it
  return !before.ok();
}

Result<ScheduleRecord> JobSchedules::Remove(const std::string& team, const std::string& name,
                                            bool stop) {
  const MutexLock lock(work_);
  TRY_ASSIGN(ScheduleRecord schedule, Get(team, name));
  bool changed = false;
  CountEnded(&schedule, &changed);
  TRY(options_.store->records().Delete(kScheduleKind, schedule.key(), kAnyVersion,
                                       options_.clock->Wall()));
  if (stop) {
    for (const std::string& id : schedule.active) options_.stop(id, "its schedule was removed");
  }
  return schedule;
}

Result<std::string> JobSchedules::RunNow(const std::string& team, const std::string& name) {
  const MutexLock lock(work_);
  TRY_ASSIGN(ScheduleRecord schedule, Get(team, name));
  const std::string text = FormatWall(options_.clock->Wall());
  // With seconds, so that it is not the id of a time.
  const std::string id = RunId(schedule, options_.clock->Wall()) + text.substr(17, 2);
  TRY(options_.start(schedule, id, {}));
  schedule.active.push_back(id);
  schedule.last_run = id;
  TRY(Store(schedule));
  return id;
}

void JobSchedules::Tick() {
  const MutexLock lock(work_);
  const WallTime now = options_.clock->Wall();
  if (now < looked_ || now - looked_ >= kLookInterval || next_.empty()) return LookAtAll();
  std::vector<std::string> due;
  for (const auto& [key, next] : next_) {
    if (next <= now) due.push_back(key);
  }
  for (const std::string& key : due) {
    const size_t slash = key.find('/');
    auto schedule = Get(key.substr(0, slash), key.substr(slash + 1));
    if (schedule.ok()) {
      LookAt(&*schedule);
    } else if (schedule.status().code() == Code::kNotFound) {
      next_.erase(key);
    }
  }
}

// Also sees runs that have ended, and the clock that was set.
void JobSchedules::LookAtAll() {
  auto schedules = List();
  if (!schedules.ok()) return LogWarning("schedules: {}", schedules.status().message());
  looked_ = options_.clock->Wall();
  next_.clear();
  for (ScheduleRecord& schedule : *schedules) LookAt(&schedule);
}

void JobSchedules::LookAt(ScheduleRecord* schedule) {
  bool changed = false;
  Status done = TickOne(schedule, &changed);
  if (changed) {
    const Status stored = Store(*schedule);
    if (done.ok()) done = stored;
  }
  if (!done.ok() && done.code() != Code::kAborted)
    LogWarning("schedule {}: {}", schedule->key(), done.message());
  next_.erase(schedule->key());
  if (!done.ok()) {
    next_[schedule->key()] = options_.clock->Wall() + kTryAgain;
    return;
  }
  const auto next = NextTime(*schedule, schedule->decided);
  if (next.ok() && *next) next_[schedule->key()] = **next;
}

// Takes runs that have ended out of the active ones.
void JobSchedules::CountEnded(ScheduleRecord* schedule, bool* changed) {
  std::vector<std::string> active;
  for (const std::string& id : schedule->active) {
    const auto end = FindEnd(options_.store, id);
    if (!end.ok() || !*end) {
      active.push_back(id);
      continue;
    }
    const WallTime time = (*end)->time > WallTime() ? (*end)->time : options_.clock->Wall();
    if ((*end)->state == JobState::kSucceeded) {
      ++schedule->successes;
      schedule->last_success = time;
    } else {
      ++schedule->failures;
      schedule->last_failure = time;
      schedule->last_reason = id + " " + std::string(job::NameOf((*end)->state)) +
                              ((*end)->reason.empty() ? "" : ": " + (*end)->reason);
    }
  }
  if (active.size() == schedule->active.size()) return;
  schedule->active = std::move(active);
  *changed = true;
}

Status JobSchedules::StartOne(ScheduleRecord* schedule, const std::string& id,
                              const std::vector<std::string>& after) {
  const Status started = options_.start(*schedule, id, after);
  if (MayBeTriedAgain(started)) return started;
  schedule->last_run = id;
  if (started.ok() || started.code() == Code::kAlreadyExists) {
    if (std::ranges::find(schedule->active, id) == schedule->active.end())
      schedule->active.push_back(id);
    return Status::Ok();
  }
  ++schedule->failures;
  schedule->last_failure = options_.clock->Wall();
  schedule->last_reason = id + " could not be submitted: " + started.message();
  return Status::Ok();
}

Status JobSchedules::TickOne(ScheduleRecord* schedule, bool* changed) {
  const WallTime now = options_.clock->Wall();
  TRY_ASSIGN(const auto next, NextTime(*schedule, schedule->decided));
  const bool set_back = schedule->decided > now;
  if (!set_back && (!next || *next > now)) {
    CountEnded(schedule, changed);
    return Status::Ok();
  }
  CountEnded(schedule, changed);
  TRY_ASSIGN(ScheduleDecision decision, DecideSchedule(*schedule, !schedule->active.empty(), now));
  if (decision.due && schedule->active.size() >= kMostActive) {
    decision.due.reset();
    ++decision.skipped;
    decision.why = "more than 100 runs are unfinished";
  }
  if (decision.due) {
    const std::vector<std::string> before =
        decision.replace ? schedule->active : std::vector<std::string>();
    for (const std::string& id : before)
      options_.stop(id, "replaced by the next run of its schedule");
    TRY(StartOne(schedule, RunId(*schedule, *decision.due), before));
  }
  schedule->skipped += decision.skipped;
  if (decision.skipped > 0 && !decision.why.empty()) schedule->last_reason = decision.why;
  *changed |= decision.due || decision.skipped > 0 || decision.decided < schedule->decided;
  schedule->decided = decision.decided;
  return Status::Ok();
}

}  // namespace shoal::controller
