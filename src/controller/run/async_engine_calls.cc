#include "controller/run/async_engine_calls.h"

#include <memory>
#include <utility>

#include "base/log.h"
#include "controller/recovery/leftovers.h"

namespace shoal::controller {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kClearGrace{2000};

Status CheckLead(const Lead& lead) {
  if (lead.held()) return Status::Ok();
  return Aborted("this server does not lead at the moment");
}
constexpr milliseconds kInterruptAgain{100};

// Repeats the interrupt until the engine has returned: one interrupt ends one wait, and Apply may
// enter another.
void Abandon(engine::Engine* engine, const std::string& job, std::future<void> change) {
  while (change.valid() && change.wait_for(milliseconds(0)) != std::future_status::ready) {
    engine->Interrupt(job);
    change.wait_for(kInterruptAgain);
  }
}

std::string LastLineOf(engine::Engine* engine, const std::string& job, const std::string& role,
                       int index) {
  Result<std::string> log = engine->TaskLog(job, role, index, 2000);
  if (!log.ok()) return "";
  while (!log->empty() && log->back() == '\n') log->pop_back();
  const size_t line = log->rfind('\n');
  const std::string last = line == std::string::npos ? *log : log->substr(line + 1);
  return last.empty() ? "" : "; last output: " + last;
}

// Stops the job and removes its scratch files; records what the engine could not remove.
Status StopAndClear(const EngineCallOptions& options, JobState state) {
  const std::filesystem::path dir = options.home.job_dir(options.job);
  Status stopped = options.engine->Stop(options.job, kClearGrace);
  const Status cleared = RemoveScratch(dir, state);
  if (stopped.ok()) stopped = cleared;
  if (stopped.ok()) {
    if (options.executor != nullptr) ForgetLeftover(options.home, options.job);
    return stopped;
  }
  const Leftover left{options.job, options.instance, stopped.message(), options.clock->Wall()};
  const Status recorded = RecordLeftover(options.home, left);
  if (!recorded.ok()) LogWarning("job {}: {}", options.job, recorded.message());
  if (recorded.ok())
    stopped = Status(stopped.code(), stopped.message() + "; the next command tries again");
  return stopped;
}

}  // namespace

AsyncEngineCalls::~AsyncEngineCalls() {
  Abandon(options_.engine, options_.job, std::move(change_));
  if (cleanup_.valid()) cleanup_.wait();
}

std::future<void> AsyncEngineCalls::Start(std::function<void()> call) const {
  if (options_.executor == nullptr) return std::async(std::launch::async, std::move(call));
  auto task = std::make_shared<std::packaged_task<void()>>(std::move(call));
  std::future<void> ended = task->get_future();
  options_.executor->Execute([task] { (*task)(); });
  return ended;
}

void AsyncEngineCalls::Apply(engine::DesiredJob desired, Done done) {
  if (inline_calls()) return done(options_.engine->Apply(desired));
  change_ =
      Start([engine = options_.engine, lead = options_.lead, poster = options_.tasks->poster(),
             desired = std::move(desired), done = std::move(done)] {
        const Status leads = CheckLead(lead);
        const Status applied = leads.ok() ? engine->Apply(desired) : leads;
        poster.Post([done, applied] { done(applied); });
      });
}

void AsyncEngineCalls::Adopt(std::function<void(const Tasks&)> done) {
  const std::string dir = options_.home.job_dir(options_.job).string();
  if (inline_calls()) return done(options_.engine->Adopt(options_.job, dir));
  change_ = Start([engine = options_.engine, lead = options_.lead, job = options_.job, dir,
                   poster = options_.tasks->poster(), done = std::move(done)] {
    const Status leads = CheckLead(lead);
    const auto adopted =
        std::make_shared<Tasks>(leads.ok() ? engine->Adopt(job, dir) : Tasks(leads));
    poster.Post([done, adopted] { done(*adopted); });
  });
}

void AsyncEngineCalls::FindLastLine(const std::string& role, int index,
                                    std::function<void(const std::string&)> done) {
  engine::Engine* const engine = options_.engine;
  if (options_.executor == nullptr) return done(LastLineOf(engine, options_.job, role, index));
  options_.executor->Execute([engine, job = options_.job, role, index,
                              poster = options_.tasks->poster(), done = std::move(done)] {
    poster.Post([done, line = LastLineOf(engine, job, role, index)] { done(line); });
  });
}

void AsyncEngineCalls::CleanUp(JobState state, Done done) {
  const auto lock = std::make_shared<UniqueFd>(std::move(cleanup_lock_));
  const auto change = std::make_shared<std::future<void>>(std::move(change_));
  cleanup_ = Start([options = options_, state, lock, change, poster = options_.tasks->poster(),
                    done = std::move(done)] {
    Abandon(options.engine, options.job, std::move(*change));
    const Status stopped = StopAndClear(options, state);
    ReleaseCleanupLock(options.home.job_dir(options.job), std::move(*lock));
    poster.Post([done, stopped] { done(stopped); });
  });
}

}  // namespace shoal::controller
