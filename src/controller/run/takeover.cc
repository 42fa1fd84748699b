#include "controller/run/takeover.h"

#include <utility>

#include "controller/files/state_home.h"
#include "controller/recovery/reconcile.h"

namespace shoal::controller {
namespace {

constexpr Duration kAgain = std::chrono::milliseconds(500);

}  // namespace

void Takeover::Begin() { Adopt(); }

void Takeover::Adopt() {
  state_ = State::kAdopting;
  calls_->Adopt([this](const AsyncEngineCalls::Tasks& tasks) { OnAdopted(tasks); });
}

void Takeover::OnAdopted(const AsyncEngineCalls::Tasks& tasks) {
  if (state_ != State::kAdopting) return;
  if (!tasks.ok()) return Retry(tasks.status().message());
  adopted_ = *tasks;
  // The journal of a coordinator that is gone may hold a verdict that it could not write.
  const bool journal = shared_ && !CoordinatorLives(adopted_);
  const Result<rendezvous::Verdict> verdict =
      journal ? ReadVerdictOrJournal(dir_) : ReadVerdict(dir_);
  state_ = State::kApplying;
  if (verdict.ok() && callbacks_.end_with(*verdict)) return Stop();
  callbacks_.apply();
}

void Takeover::OnApplied(const Status& status) {
  if (state_ != State::kApplying) return;
  if (!status.ok()) return Retry(status.message());
  Stop();
  callbacks_.on_done();
}

// The engine does not answer, or another process holds the job for a moment.
void Takeover::Retry(const std::string& why) {
  state_ = State::kIdle;
  if (std::exchange(obstacle_, why) != why)
    callbacks_.on_note("its tasks cannot be taken over yet: " + why);
  tasks_->PostAfter(kAgain, [this] {
    if (state_ == State::kIdle) Adopt();
  });
}

std::vector<engine::TaskEvent> Takeover::TakeEvents() {
  std::vector<engine::TaskEvent> events;
  for (const engine::TaskStatus& task : std::exchange(adopted_, {})) {
    const bool lives =
        task.phase == engine::TaskPhase::kStarting || task.phase == engine::TaskPhase::kRunning;
    if (lives && task.role == kCoordinatorRole)
      events.push_back({"", task.role, task.index, task.incarnation, task.phase, {}, {}});
  }
  for (engine::TaskEvent& event : std::exchange(events_, {})) events.push_back(std::move(event));
  return events;
}

}  // namespace shoal::controller
