// The end of a run: stores it, acknowledges the verdict and removes the job's resources, in an
// order that a kill of this process cannot break (ADR 272). Used by job_run.cc.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "controller/run/async_engine_calls.h"
#include "controller/run/controller.h"
#include "controller/run/event_batcher.h"
#include "controller/threads/loop_task_group.h"

namespace shoal::controller {

// Called on the loop's thread.
struct JobEndingCallbacks {
  std::function<void()> acknowledge = {};  // the verdict, to the coordinator
  // The engine could not remove all of the job's resources.
  std::function<void(const Status&)> on_remains = {};
  // Everything is done; whether the end is stored.
  std::function<void(const Status&)> on_done = {};
  // Another server leads, and the end is not this run's: nothing was acknowledged or removed.
  std::function<void()> on_superseded = {};
};

// Must be used on the loop's thread. The pointers must outlive it.
class JobEnding {
 public:
  JobEnding(const ControllerOptions* options, std::string id, LoopTaskGroup* tasks,
            EventBatcher* events, AsyncEngineCalls* calls, JobEndingCallbacks callbacks)
      : options_(options),
        id_(std::move(id)),
        tasks_(tasks),
        events_(events),
        calls_(calls),
        callbacks_(std::move(callbacks)) {}

  // Once. Under a supervisor the steps follow each other; else the end is stored while the
  // resources are removed, which is faster.
  void Begin(JobState state, const std::string& why);

 private:
  void StoreFirst(JobState state, const std::string& why);
  void OnStored(JobState state, const Status& stored);
  void CleanUp(JobState state, std::function<void()> done);

  const ControllerOptions* const options_;
  const std::string id_;
  LoopTaskGroup* const tasks_;
  EventBatcher* const events_;
  AsyncEngineCalls* const calls_;
  const JobEndingCallbacks callbacks_;
};

}  // namespace shoal::controller
