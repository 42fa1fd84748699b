#include "controller/run/async_engine_calls.h"

#include <utility>

#include "base/log.h"
#include "controller/recovery/leftovers.h"

namespace shoal::controller {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kClearGrace{2000};
constexpr milliseconds kInterruptAgain{100};

// Repeats the interrupt until the engine has returned: one interrupt ends one wait, and Apply may
// enter another.
void Abandon(engine::Engine* engine, const std::string& job, std::future<void> applying) {
  while (applying.valid() && applying.wait_for(milliseconds(0)) != std::future_status::ready) {
    engine->Interrupt(job);
    applying.wait_for(kInterruptAgain);
  }
}

}  // namespace

AsyncEngineCalls::~AsyncEngineCalls() {
  Abandon(engine_, job_, std::move(applying_));
  if (cleanup_.valid()) cleanup_.wait();
}

void AsyncEngineCalls::Apply(engine::DesiredJob desired, Done done) {
  applying_ =
      std::async(std::launch::async, [this, desired = std::move(desired), done = std::move(done)] {
        done(engine_->Apply(desired));
      });
}

std::string AsyncEngineCalls::LastLine(const std::string& role, int index) {
  Result<std::string> log = engine_->TaskLog(job_, role, index, 2000);
  if (!log.ok()) return "";
  while (!log->empty() && log->back() == '\n') log->pop_back();
  const size_t line = log->rfind('\n');
  const std::string last = line == std::string::npos ? *log : log->substr(line + 1);
  return last.empty() ? "" : "; last output: " + last;
}

void AsyncEngineCalls::CleanUp(JobState state, Done done) {
  const auto clear = [this, state](std::future<void> applying, const Done& told) {
    Abandon(engine_, job_, std::move(applying));
    Status stopped = engine_->Stop(job_, kClearGrace);
    RemoveScratch(home_.job_dir(job_), state);
    if (!stopped.ok()) {
      const Leftover left{job_, engine_->name(), stopped.message(), clock_->Wall()};
      const Status recorded = RecordLeftover(home_, left);
      if (!recorded.ok()) LogWarning("job {}: {}", job_, recorded.message());
      if (recorded.ok())
        stopped = Status(stopped.code(), stopped.message() + "; the next command tries again");
    }
    ReleaseCleanupLock(home_.job_dir(job_), std::move(cleanup_lock_));
    told(stopped);
  };
  cleanup_ = std::async(std::launch::async, clear, std::move(applying_), std::move(done));
}

}  // namespace shoal::controller
