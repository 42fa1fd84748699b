#include "controller/recovery/reconcile.h"

#include <algorithm>
#include <atomic>

#include "base/log.h"
#include "controller/store/process_identity.h"
#include "controller/store/supervisor_mark.h"
#include "job/execution/job_dir.h"
#include "rendezvous/journal/journal.h"

namespace shoal::controller {
namespace {

constexpr std::chrono::milliseconds kClearGrace{2000};
constexpr const char* kFrozen = "its controller is frozen; another command has recorded the end";
constexpr const char* kGone = "its controller was killed and its coordinator is gone";

// The job ended when its verdict was written, independent of the time of this recovery.
WallTime TimeOfEnd(const std::filesystem::path& dir, const JobRecord& job, WallTime now) {
  std::error_code error;
  auto written = std::filesystem::last_write_time(job::JobDir(dir).verdict(), error);
  if (error) written = std::filesystem::last_write_time(job::JobDir(dir).journal(), error);
  const WallTime begun = std::max(job.submitted, job.started);
  if (error || begun > now) return now;
  const auto at = std::chrono::file_clock::to_sys(written);
  return std::clamp(std::chrono::time_point_cast<WallTime::duration>(at), begun, now);
}

// The events that complete the log of a job whose controller died: a note, the tasks of the
// verdict, the missing states and the end.
std::vector<Event> EventsOfEnd(const JobRecord& job, WallTime now, const json::object& results,
                               const Result<rendezvous::Verdict>& verdict, bool frozen) {
  std::vector<Event> events;
  events.push_back(NoteEvent(now, frozen ? kFrozen : "its controller was killed"));
  if (!verdict.ok()) {
    const bool damaged = verdict.status().code() != Code::kNotFound;
    events.push_back(EndedEvent(
        now, JobState::kFailed,
        damaged
            ? std::string(kGone) + ", and its verdict cannot be read: " + verdict.status().message()
            : kGone,
        results));
    return events;
  }
  for (const rendezvous::TaskResult& result : verdict->tasks) {
    const int attempt = result.attempts > 0 ? result.attempts - 1 : 0;
    events.push_back(TaskEvent(
        now, {result.role, result.index, attempt, job::TaskState::kEnded, result.end, false, ""}));
  }
  // Adds the intermediate states, which were lost with the controller.
  if (verdict->state == JobState::kSuspended) {
    events.push_back(StateEvent(now, JobState::kSuspended, verdict->reason));
    return events;
  }
  if (job.state == JobState::kPending) events.push_back(StateEvent(now, JobState::kAdmitted, ""));
  if (job.state <= JobState::kAdmitted) events.push_back(StateEvent(now, JobState::kStarting, ""));
  if (job.state != JobState::kFinishing)
    events.push_back(StateEvent(now, JobState::kFinishing, ""));
  events.push_back(EndedEvent(now, verdict->state, verdict->reason, results));
  return events;
}

Result<ReconciledJob> RecordEnd(const ReconcileOptions& options, const JobRecord& job,
                                const Result<rendezvous::Verdict>& verdict) {
  const std::filesystem::path dir = options.home.job_dir(job.id);
  const WallTime end = TimeOfEnd(dir, job, options.clock->Wall());
  json::object results = job.result;
  for (const auto& field : ReadResults(dir, 0)) results[field.key()] = field.value();
  const bool frozen = options.frozen == job.id;
  TRY(options.store->Append(job.id, EventsOfEnd(job, end, results, verdict, frozen),
                            Durability::kSynced));
  TRY_ASSIGN(const JobRecord ended, options.store->GetJob(job.id));
  return ReconciledJob{job.id, false, ended.state, ended.reason};
}

Status ClaimJob(const ReconcileOptions& options, const JobRecord& job) {
  if (options.hold_liveness_lock) TRY(options.hold_liveness_lock());
  TRY_ASSIGN(const bool ours,
             options.store->ClaimOwnership(job.id, job.owner, options.self, options.clock->Wall()));
  if (!ours) return Aborted("another process is recovering it");
  if (options.frozen != job.id) RemoveLivenessLock(options.home.root(), job.owner);
  return Status::Ok();
}

// The job's processes belong to another PID namespace: they cannot be found or stopped from here,
// and end by themselves after their coordinator.
Result<ReconciledJob> RepairElsewhere(const ReconcileOptions& options, const JobRecord& job) {
  const std::filesystem::path dir = options.home.job_dir(job.id);
  Result<rendezvous::Verdict> verdict = ReadVerdict(dir);
  if (!verdict.ok() && rendezvous::JournalIsLocked(job::JobDir(dir).journal()))
    return ReconciledJob{job.id, true, job.state, ""};
  if (!verdict.ok()) verdict = ReadVerdictOrJournal(dir);
  TRY(ClaimJob(options, job));
  return RecordEnd(options, job, verdict);
}

// True if the next supervisor continues the job. One with a verdict has ended.
bool WaitsForSupervisor(const ReconcileOptions& options, const JobRecord& job) {
  if (options.given_up == job.id || options.frozen == job.id) return false;
  return IsSupervisor(options.home.root(), job.owner) &&
         !ReadVerdict(options.home.job_dir(job.id)).ok();
}

// Recovers a job whose processes this process may look up and stop.
Result<ReconciledJob> RepairJob(const ReconcileOptions& options, const JobRecord& job) {
  if (WaitsForSupervisor(options, job)) return ReconciledJob{job.id, true, job.state, ""};
  TRY_ASSIGN(engine::Engine* const engine, options.engine(job.engine));
  const bool same_boot = job.owner.boot_id == options.self.boot_id;
  if (engine->UsesPids() && same_boot && !SharesPids(job.owner))
    return RepairElsewhere(options, job);
  const std::filesystem::path dir = options.home.job_dir(job.id);
  Result<rendezvous::Verdict> verdict = ReadVerdict(dir);
  // The engine of a frozen process does not report changes.
  if (options.frozen == job.id && !verdict.ok() &&
      rendezvous::JournalIsLocked(job::JobDir(dir).journal()))
    return Aborted("its coordinator lives and has not decided yet");
  // The engine restarts a lost coordinator. The report of that one, that it was stopped, is not the
  // job's end.
  std::atomic<bool> again{false};
  const auto watcher = engine->Watch(job.id, [&again](const engine::TaskEvent& event) {
    if (event.role == kCoordinatorRole && event.phase == engine::TaskPhase::kStarting) again = true;
  });
  TRY_ASSIGN(const std::vector<engine::TaskStatus> tasks, engine->Adopt(job.id, dir.string()));
  if (!verdict.ok() && CoordinatorLives(tasks)) return ReconciledJob{job.id, true, job.state, ""};
  const auto read_end = engine->SharesJobDirectory() ? &ReadVerdictOrJournal : &ReadVerdict;
  if (!verdict.ok()) verdict = read_end(dir);  // it may have come while the coordinator died
  TRY(ClaimJob(options, job));
  TRY(engine->Stop(job.id, kClearGrace));
  RemoveScratch(dir, verdict.ok() ? verdict->state : JobState::kFailed);
  if (!verdict.ok() && !again) verdict = read_end(dir);
  return RecordEnd(options, job, verdict);
}

}  // namespace

bool CoordinatorLives(const std::vector<engine::TaskStatus>& tasks) {
  for (const engine::TaskStatus& task : tasks) {
    const bool lives =
        task.phase == engine::TaskPhase::kStarting || task.phase == engine::TaskPhase::kRunning;
    if (task.role == kCoordinatorRole && lives) return true;
  }
  return false;
}

Result<std::vector<ReconciledJob>> Reconcile(const ReconcileOptions& options) {
  TRY_ASSIGN(const std::vector<JobRecord> jobs,
             options.store->ListJobs({.ended = false, .limit = INT32_MAX}));
  std::vector<ReconciledJob> repaired;
  for (const JobRecord& job : jobs) {
    if (job.state == JobState::kSuspended) continue;
    if (job.id != options.frozen && IsAlive(options.home.root(), job.owner)) continue;
    Result<ReconciledJob> one = RepairJob(options, job);
    // A failed recovery must not block the user's command.
    if (!one.ok()) {
      Log(LogLevel::kInfo, "{}: not repaired: {}", job.id, one.status().message());
      continue;
    }
    repaired.push_back(std::move(*one));
  }
  return repaired;
}

}  // namespace shoal::controller
