#include "controller/recovery/leftovers.h"

#include <algorithm>
#include <filesystem>
#include <future>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

namespace shoal::controller {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kTryAgainAfter{60};
constexpr milliseconds kGrace{2000};
constexpr milliseconds kInterruptAgain{100};

fs::path PathOf(const StateHome& home, const std::string& job) {
  return home.root() / "leftovers" / job;
}

Result<Leftover> Read(const fs::path& path) {
  constexpr size_t kMaxFile = 64 << 10;
  TRY_ASSIGN(const std::string text, ReadFile(path, kMaxFile));
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  Leftover leftover;
  leftover.job = path.filename().string();
  leftover.engine = GetStringOr(object, "engine", "");
  leftover.why = GetStringOr(object, "why", "");
  leftover.tried = WallTime(seconds(GetIntOr(object, "tried", 0)));
  return leftover;
}

// Calls Stop and interrupts it after `patience`.
Status StopWithin(engine::Engine* engine, const std::string& job, milliseconds patience) {
  auto stopped = std::async(std::launch::async, [&] { return engine->Stop(job, kGrace); });
  for (milliseconds wait = patience; stopped.wait_for(wait) != std::future_status::ready;
       wait = kInterruptAgain)
    engine->Interrupt(job);
  return stopped.get();
}

// Skips a job that has not ended: a suspended job may continue at any time.
bool HasEnded(Store* store, const std::string& job, bool suspended) {
  const Result<JobRecord> record = store->GetJob(job);
  if (!record.ok()) return record.status().code() == Code::kNotFound;
  return job::IsFinal(record->state) || (suspended && record->state == JobState::kSuspended);
}

// A job without a record has no directory any more.
Status RemoveScratchOf(const ReconcileOptions& options, const std::string& job) {
  const Result<JobRecord> record = options.store->GetJob(job);
  return record.ok() ? RemoveScratch(options.home.job_dir(job), record->state) : Status::Ok();
}

}  // namespace

Status RecordLeftover(const StateHome& home, const Leftover& leftover) {
  const fs::path path = PathOf(home, leftover.job);
  TRY(MakeDirectories(path.parent_path(), 0700));
  const auto tried = std::chrono::duration_cast<seconds>(leftover.tried.time_since_epoch());
  const json::object object{
      {"engine", leftover.engine}, {"why", leftover.why}, {"tried", tried.count()}};
  return WriteFileAtomically(path, ToText(object) + "\n", 0600);
}

void ClearScratch(const StateHome& home, const Leftover& job, JobState state) {
  Leftover left = job;
  const Status cleared = RemoveScratch(home.job_dir(job.job), state);
  if (cleared.ok()) return;
  left.why = cleared.message();
  if (const Status recorded = RecordLeftover(home, left); !recorded.ok())
    LogWarning("job {}: {}", job.job, recorded.message());
}

void ForgetLeftover(const StateHome& home, const std::string& job) {
  std::error_code error;
  fs::remove(PathOf(home, job), error);
}

std::vector<Leftover> ListLeftovers(const StateHome& home) {
  std::vector<Leftover> list;
  std::error_code error;
  for (fs::directory_iterator it(home.root() / "leftovers", error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) continue;
    if (Result<Leftover> one = Read(it->path()); one.ok()) list.push_back(std::move(*one));
  }
  std::sort(list.begin(), list.end(),
            [](const Leftover& a, const Leftover& b) { return a.job < b.job; });
  return list;
}

// Errors are logged, not returned: the next command tries again.
std::vector<Leftover> RemoveLeftovers(const ReconcileOptions& options, milliseconds patience,
                                      bool alone) {
  std::vector<Leftover> removed;
  for (Leftover& leftover : ListLeftovers(options.home)) {
    const WallTime now = options.clock->Wall();
    // A time in the future (the clock was set back) does not postpone the attempt.
    const bool lately = !alone && leftover.tried <= now && now - leftover.tried < kTryAgainAfter;
    if (lately || !HasEnded(options.store, leftover.job, alone)) continue;
    const auto engine = options.engine(leftover.engine);
    Status stopped = engine.status();
    if (engine.ok()) {
      // Marks the attempt, so that other processes skip the job meanwhile.
      leftover.tried = now;
      if (const Status noted = RecordLeftover(options.home, leftover); !noted.ok()) continue;
      stopped = StopWithin(*engine, leftover.job, patience);
    }
    if (stopped.ok()) stopped = RemoveScratchOf(options, leftover.job);
    if (!stopped.ok()) {
      Log(LogLevel::kInfo, "{}: not everything was removed: {}", leftover.job, stopped.message());
      continue;
    }
    ForgetLeftover(options.home, leftover.job);
    removed.push_back(std::move(leftover));
  }
  return removed;
}

}  // namespace shoal::controller
