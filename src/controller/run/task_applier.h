// Keeps the engine's desired state of a job up to date: one coordinator and the launchers of the
// tasks that should exist. Used by job_run.cc.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "controller/run/async_engine_calls.h"
#include "controller/run/controller.h"
#include "controller/run/desired_job.h"
#include "controller/run/desired_membership.h"
#include "controller/run/loop_task_group.h"
#include "engine/engine.h"

namespace shoal::controller {

// Must be used on the loop's thread. All pointers must outlive it.
class TaskApplier {
 public:
  struct Options {
    engine::Engine* engine = nullptr;
    std::string id = {};         // the job's
    DesiredJobPaths paths = {};  // without bootstrap files
    const job::Job* job = nullptr;
    AsyncEngineCalls* calls = nullptr;
    LoopTaskGroup* tasks = nullptr;
    std::function<bool()> is_running = {};  // false: results are ignored
    // The result of ApplySoon; `first`: the first success. Not called if is_running is false.
    std::function<void(const Status&, bool first)> on_applied = {};
  };
  explicit TaskApplier(Options options) : options_(std::move(options)) {}

  // Starts with the members in the job file. Blocks on the engine.
  Status ApplyFirst();
  // Applies on another thread, since a cluster may take minutes to answer. One call at a time; a
  // change during a call is applied after it.
  void ApplySoon();
  // Events that may change the desired state; true if it has changed and must be applied.
  template <typename Event>
  bool ApplyEvent(const Event& event) {
    return membership_.ApplyEvent(event);
  }
  // Applies the current state: at once, or with ApplySoon on an engine with its own queue.
  Status Reapply();
  void StartMembership() { membership_ = DesiredMembership(options_.job); }

  // An Apply has succeeded.
  bool applied() const { return applied_; }

 private:
  Result<engine::DesiredJob> Build() const;
  void OnApplied(const Status& status);

  const Options options_;
  DesiredMembership membership_;
  bool applied_ = false;
  bool applying_ = false;     // an Apply is in progress
  bool apply_again_ = false;  // the desired state has changed since that Apply began
};

}  // namespace shoal::controller
