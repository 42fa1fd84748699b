// Keeps the engine's desired state of a job up to date: one coordinator and the launchers of the
// tasks that should exist. Used by job_run.cc.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "controller/membership/desired_job.h"
#include "controller/membership/desired_membership.h"
#include "controller/run/async_engine_calls.h"
#include "engine/engine.h"

namespace shoal::controller {

// Must be used on the loop's thread. All pointers must outlive it.
class TaskApplier {
 public:
  struct Options {
    std::string id = {};         // the job's
    DesiredJobPaths paths = {};  // without bootstrap files
    const job::Job* job = nullptr;
    AsyncEngineCalls* calls = nullptr;
    std::function<bool()> is_running = {};  // false: results are ignored
    // The result of Apply; `first`: the first success. Not called if is_running is false.
    std::function<void(const Status&, bool first)> on_applied = {};
  };
  explicit TaskApplier(Options options) : options_(std::move(options)) {}

  // The members in the job file; to be called before Apply, with the final job.
  void StartMembership() { membership_ = DesiredMembership(options_.job); }
  // The members of a job that an earlier controller has run.
  void RestoreMembership(DesiredMembership membership) { membership_ = std::move(membership); }

  // Makes the engine apply the current state. One call at a time; a change during a call is applied
  // after it.
  void Apply();
  // Events that may change the desired state; true if it has changed and must be applied.
  template <typename Event>
  bool ApplyEvent(const Event& event) {
    return membership_.ApplyEvent(event);
  }

  // An Apply has succeeded.
  bool applied() const { return applied_; }

 private:
  enum class Progress : uint8_t { kIdle, kApplying, kApplyingOld };

  Result<engine::DesiredJob> Build() const;
  void OnApplied(const Status& status);

  const Options options_;
  DesiredMembership membership_;
  bool applied_ = false;
  Progress progress_ = Progress::kIdle;  // kApplyingOld: the state has changed since the call began
};

}  // namespace shoal::controller
