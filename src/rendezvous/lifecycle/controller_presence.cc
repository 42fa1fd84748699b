#include "rendezvous/lifecycle/controller_presence.h"

#include <algorithm>

#include "base/clock.h"

namespace shoal::rendezvous {

using Kind = Action::Kind;

void ControllerPresence::On(const ControllerConnected&) {
  ++controllers_;
  was_connected_ = true;
}

void ControllerPresence::On(const ControllerDisconnected&) {
  controllers_ = std::max(0, controllers_ - 1);
  if (controllers_ == 0) due_ = state_->now + state_->limits.controller_loss;
}

void ControllerPresence::On(const ControllerAlive&) {
  if (controllers_ > 0) return;
  due_ = state_->now + state_->limits.controller_start;
  state_->gather_from = state_->now;  // the controller has the tasks created
}

void ControllerPresence::On(const VerdictAcknowledged&) { acknowledged_ = true; }

bool ControllerPresence::IsAbandoned() const {
  const bool keep = state_->job.on_controller_loss == job::OnControllerLoss::kKeep;
  return !keep && controllers_ == 0 && state_->now >= due_;
}

void ControllerPresence::ExitIfDone() {
  if (!state_->verdict || exited_) return;
  const bool gone = abandoned_ || (!state_->limits.holds_verdict && IsAbandoned());
  const bool awaited = !acknowledged_ && !gone;
  if (state_->now < exit_by_ && (awaited || state_->tasks.any_connected())) return;
  exited_ = true;
  state_->Emit(Kind::kExit).after = state_->seq;
}

void ControllerPresence::CheckAbandoned() {
  if (!IsAbandoned()) return;
  abandoned_ = true;
  const Millis limit =
      was_connected_ ? state_->limits.controller_loss : state_->limits.controller_start;
  state_->DecideVerdict(job::JobState::kCancelled,
                        "no controller was connected for " + FormatDuration(limit) +
                            ", and the job stops without one ('on_controller_loss: stop')");
}

std::optional<Millis> ControllerPresence::AbandonDeadline() const {
  const bool keep = state_->job.on_controller_loss == job::OnControllerLoss::kKeep;
  if (keep || controllers_ > 0) return std::nullopt;
  return due_;
}

std::optional<Millis> ControllerPresence::ExitDeadline() const {
  if (exited_) return std::nullopt;
  return exit_by_;
}

}  // namespace shoal::rendezvous
