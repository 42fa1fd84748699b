// Whether a controller follows the job: a job with `on_controller_loss: stop` ends without one, and
// the coordinator stays until its verdict is acknowledged.
#pragma once

#include <optional>

#include "rendezvous/lifecycle/core_state.h"

namespace shoal::rendezvous {

class ControllerPresence {
 public:
  explicit ControllerPresence(CoreState* state) : state_(state) {}

  void On(const ControllerConnected& event);
  void On(const ControllerDisconnected& event);
  void On(const ControllerAlive& event);
  void On(const VerdictAcknowledged& event);

  void Begin() { due_ = state_->now + state_->limits.controller_start; }
  bool connected() const { return controllers_ > 0; }
  // Cancels the job if no controller has been there for too long and the job stops without one.
  void CheckAbandoned();
  // When CheckAbandoned may cancel; none: it will not.
  std::optional<Millis> AbandonDeadline() const;

  // The verdict is recorded: wait for its acknowledgement, but not for ever.
  void AwaitAcknowledgement() { exit_by_ = state_->now + state_->limits.linger; }
  // Emits kExit, once, when nothing is waited for any more.
  void ExitIfDone();
  // None: kExit was emitted.
  std::optional<Millis> ExitDeadline() const;

 private:
  bool IsAbandoned() const;

  CoreState* const state_;
  int controllers_ = 0;
  bool was_connected_ = false;
  Millis due_{0};  // while there is none
  Millis exit_by_{0};
  bool abandoned_ = false;  // the verdict is for the lack of a controller
  bool acknowledged_ = false;
  bool exited_ = false;
};

}  // namespace shoal::rendezvous
