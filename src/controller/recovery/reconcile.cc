#include "controller/recovery/reconcile.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <optional>
#include <utility>

#include "base/access/directory_owner.h"
#include "base/log.h"
#include "controller/recovery/leftovers.h"
#include "controller/store/coordinator_events.h"
#include "controller/store/process_identity.h"
#include "controller/store/supervisor_mark.h"
#include "job/execution/job_dir.h"
#include "job/spec/json.h"
#include "rendezvous/client/journal_events.h"
#include "rendezvous/journal/journal.h"

namespace shoal::controller {
namespace {

constexpr std::chrono::milliseconds kClearGrace{2000};
constexpr const char* kFrozen = "its controller is frozen; another command has recorded the end";
constexpr const char* kGone = "its controller was killed and its coordinator is gone";

// The job ended when its verdict was written, independent of the time of this recovery.
WallTime TimeOfEnd(const std::filesystem::path& dir, const JobRecord& job, WallTime now) {
  const FileAccessAs owner(dir);
  std::error_code error;
  auto written = std::filesystem::last_write_time(job::JobDir(dir).verdict(), error);
  if (error) written = std::filesystem::last_write_time(job::JobDir(dir).journal(), error);
  const WallTime begun = std::max(job.submitted, job.started);
  if (error || begun > now) return now;
  const auto at = std::chrono::file_clock::to_sys(written);
  return std::clamp(std::chrono::time_point_cast<WallTime::duration>(at), begun, now);
}

// Events that complete the log of a job, and the record that results. Events that the record does
// not allow are left out.
struct Completion {
  JobRecord record;
  std::vector<Event> events;

  void Add(Event event) {
    event.seq = record.last_seq + 1;
    if (ApplyEvent(event, &record).ok()) events.push_back(std::move(event));
  }
};

// What the coordinator recorded and the controller did not store: events from the journal, then the
// tasks of the verdict.
Status AddMissedEvents(const ReconcileOptions& options, WallTime now,
                       const Result<rendezvous::Verdict>& verdict, Completion* completion) {
  const std::string& id = completion->record.id;
  TRY_ASSIGN(const std::vector<Event> stored, options.store->ReadEvents(id, 0, INT_MAX));
  EndedAttempts ended = EndedAttemptsOf(stored);
  std::vector<rendezvous::JobEvent> missed;
  if (const auto job = job::FromJson(completion->record.job); job.ok())
    missed =
        rendezvous::ReadJournalEvents(options.home.job_dir(id), *job, LastCoordinatorSeq(stored))
            .value_or({});
  for (const rendezvous::JobEvent& event : missed) {
    if (event.type == rendezvous::JobEvent::Type::kResult)
      MergeResults(event.body, &completion->record.result);
    if (event.end) ended[{event.role, event.index}] = event.attempt;
    const bool known = event.type == rendezvous::JobEvent::Type::kJob &&
                       event.job_state == completion->record.state;
    if (std::optional<Event> entry = EntryOf(event, now); entry && !known)
      completion->Add(std::move(*entry));
  }
  if (!verdict.ok()) return Status::Ok();
  for (const rendezvous::TaskResult& result : verdict->tasks) {
    if (std::optional<Event> entry = EntryOf(result, ended, now))
      completion->Add(std::move(*entry));
  }
  return Status::Ok();
}

// The end of a job whose controller died, with the states before it, which were lost with the
// controller.
void AddEnd(WallTime now, const Result<rendezvous::Verdict>& verdict, Completion* completion) {
  const json::object results = completion->record.result;
  if (!verdict.ok()) {
    const bool damaged = verdict.status().code() != Code::kNotFound;
    return completion->Add(EndedEvent(
        now, JobState::kFailed,
        damaged
            ? std::string(kGone) + ", and its verdict cannot be read: " + verdict.status().message()
            : kGone,
        results));
  }
  if (verdict->state == JobState::kSuspended)
    return completion->Add(StateEvent(now, JobState::kSuspended, verdict->reason));
  const JobState state = completion->record.state;
  if (state == JobState::kPending) completion->Add(StateEvent(now, JobState::kAdmitted, ""));
  if (state <= JobState::kAdmitted) completion->Add(StateEvent(now, JobState::kStarting, ""));
  if (state != JobState::kFinishing) completion->Add(StateEvent(now, JobState::kFinishing, ""));
  completion->Add(EndedEvent(now, verdict->state, verdict->reason, results));
}

Result<ReconciledJob> RecordEnd(const ReconcileOptions& options, const JobRecord& job,
                                const Result<rendezvous::Verdict>& verdict) {
  const WallTime end = TimeOfEnd(options.home.job_dir(job.id), job, options.clock->Wall());
  Completion completion{job, {}};
  completion.Add(NoteEvent(end, options.frozen == job.id ? kFrozen : "its controller was killed"));
  TRY(AddMissedEvents(options, end, verdict, &completion));
  AddEnd(end, verdict, &completion);
  TRY(options.store->Append(job.id, completion.events, Durability::kSynced));
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
  const bool elsewhere = engine->UsesPids() && !SharesPids(job.owner);
  if (elsewhere && same_boot) return RepairElsewhere(options, job);
  const std::filesystem::path dir = options.home.job_dir(job.id);
  Result<rendezvous::Verdict> verdict = ReadVerdict(dir);
  // Another boot id: this machine was started again, or another one shares the state home. Only
  // there the coordinator may live, and holds its journal's lock.
  if (elsewhere && !verdict.ok() && rendezvous::JournalIsLocked(job::JobDir(dir).journal()))
    return ReconciledJob{job.id, true, job.state, ""};
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
  ClearScratch(options.home, {job.id, job.engine, "", options.clock->Wall()},
               verdict.ok() ? verdict->state : JobState::kFailed);
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
  RemoveDeadLivenessLocks(options.home.root());
  return repaired;
}

}  // namespace shoal::controller
