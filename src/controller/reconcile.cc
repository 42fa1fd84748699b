#include "controller/reconcile.h"

#include <algorithm>
#include <atomic>

#include "base/log.h"
#include "controller/desired.h"
#include "controller/process_identity.h"

namespace shoal::controller {
namespace {

constexpr std::chrono::milliseconds kClearGrace{2000};
constexpr const char* kGone = "its controller was killed and its coordinator is gone";

bool CoordinatorLives(const std::vector<engine::TaskStatus>& tasks) {
  for (const engine::TaskStatus& task : tasks) {
    const bool lives =
        task.phase == engine::TaskPhase::kStarting || task.phase == engine::TaskPhase::kRunning;
    if (task.role == kCoordinatorRole && lives) return true;
  }
  return false;
}

// The job was over when its verdict was written, however late somebody looks.
WallTime TimeOfEnd(const std::filesystem::path& dir, const JobRecord& job, WallTime now) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(dir / "verdict.json", error);
  if (error || job.submitted > now) return now;
  const auto at = std::chrono::file_clock::to_sys(written);
  return std::clamp(std::chrono::time_point_cast<WallTime::duration>(at), job.submitted, now);
}

std::vector<Event> EventsOfEnd(const JobRecord& job, WallTime now,
                               const Result<rendezvous::Verdict>& verdict) {
  std::vector<Event> events;
  events.push_back(NoteEvent(now, "its controller was killed"));
  if (!verdict.ok()) {
    const bool damaged = verdict.status().code() != Code::kNotFound;
    events.push_back(EndedEvent(
        now, JobState::kFailed,
        damaged
            ? std::string(kGone) + ", and its verdict cannot be read: " + verdict.status().message()
            : kGone,
        {}));
    return events;
  }
  for (const rendezvous::TaskResult& result : verdict->tasks) {
    const int attempt = result.attempts > 0 ? result.attempts - 1 : 0;
    events.push_back(TaskEvent(
        now, {result.role, result.index, attempt, job::TaskState::kEnded, result.end, false, ""}));
  }
  // The states in between were lost with the controller.
  if (verdict->state == JobState::kSuspended) {
    events.push_back(StateEvent(now, JobState::kSuspended, verdict->reason));
    return events;
  }
  if (job.state == JobState::kPending) events.push_back(StateEvent(now, JobState::kAdmitted, ""));
  if (job.state <= JobState::kAdmitted) events.push_back(StateEvent(now, JobState::kStarting, ""));
  if (job.state != JobState::kFinishing)
    events.push_back(StateEvent(now, JobState::kFinishing, ""));
  events.push_back(EndedEvent(now, verdict->state, verdict->reason, {}));
  return events;
}

Result<Reconciled> RepairJob(const ReconcileOptions& options, const JobRecord& job) {
  TRY_ASSIGN(engine::Engine* const engine, options.engine(job.engine));
  const std::filesystem::path dir = options.home.job_dir(job.id);
  Reconciled repaired{job.id, false, job.state, ""};
  Result<rendezvous::Verdict> verdict = ReadVerdict(dir);
  // The engine starts a coordinator that it finds lost once more. What that one says, that it is
  // stopped, is not the job's end.
  std::atomic<bool> again{false};
  const auto watcher = engine->Watch(job.id, [&again](const engine::TaskEvent& event) {
    if (event.role == kCoordinatorRole && event.phase == engine::TaskPhase::kStarting) again = true;
  });
  TRY_ASSIGN(const std::vector<engine::TaskStatus> tasks, engine->Adopt(job.id, dir.string()));
  if (!verdict.ok() && CoordinatorLives(tasks)) {
    repaired.unattended = true;
    return repaired;
  }
  if (!verdict.ok()) verdict = ReadVerdict(dir);  // it may have come while the coordinator died
  const WallTime now = options.clock->Wall();
  TRY_ASSIGN(const bool ours, options.store->Claim(job.id, job.owner, options.self, now));
  if (!ours) return Aborted("another process looks after it");
  ForgetMark(options.home.root(), job.owner);
  TRY(engine->Stop(job.id, kClearGrace));
  RemoveScratch(dir, verdict.ok() ? verdict->state : JobState::kFailed);
  if (!verdict.ok() && !again) verdict = ReadVerdict(dir);
  const std::vector<Event> events = EventsOfEnd(job, TimeOfEnd(dir, job, now), verdict);
  TRY(options.store->Append(job.id, events, Durability::kSynced));
  TRY_ASSIGN(const JobRecord ended, options.store->GetJob(job.id));
  repaired.state = ended.state;
  repaired.reason = ended.reason;
  return repaired;
}

}  // namespace

Result<std::vector<Reconciled>> Reconcile(const ReconcileOptions& options) {
  TRY_ASSIGN(const std::vector<JobRecord> jobs,
             options.store->ListJobs({.ended = false, .limit = INT32_MAX}));
  std::vector<Reconciled> repaired;
  for (const JobRecord& job : jobs) {
    if (job.state == JobState::kSuspended || IsAlive(job.owner)) continue;
    if (LivesElsewhere(options.home.root(), job.owner)) continue;
    Result<Reconciled> one = RepairJob(options, job);
    // What cannot be repaired now must not keep the user from his command.
    if (!one.ok()) {
      Log(LogLevel::kInfo, "{}: not repaired: {}", job.id, one.status().message());
      continue;
    }
    repaired.push_back(std::move(*one));
  }
  return repaired;
}

}  // namespace shoal::controller
