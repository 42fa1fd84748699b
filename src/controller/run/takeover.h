// Takes over the processes of a job that an earlier controller has admitted: the engine adopts
// them, and applies the desired state to start what does not run. Repeated until both succeed,
// since a job's processes run on meanwhile. Used by job_run.cc.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/run/async_engine_calls.h"
#include "controller/threads/loop_task_group.h"
#include "engine/engine.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

// Called on the loop's thread.
struct TakeoverCallbacks {
  // Ends the job if the verdict, which a coordinator reached without a controller, ends it.
  std::function<bool(const rendezvous::Verdict&)> end_with = {};
  std::function<void()> apply = {};  // applies the desired state and passes the result to OnApplied
  std::function<void(const std::string&)> on_note = {};
  std::function<void()> on_done = {};
};

// Must be used on the loop's thread. `calls` and `tasks` must outlive it.
class Takeover {
 public:
  // `dir`: the job's directory; `shared`: its processes see it.
  Takeover(std::filesystem::path dir, bool shared, AsyncEngineCalls* calls, LoopTaskGroup* tasks,
           TakeoverCallbacks callbacks)
      : dir_(std::move(dir)),
        shared_(shared),
        calls_(calls),
        tasks_(tasks),
        callbacks_(std::move(callbacks)) {}

  void Begin();
  void OnApplied(const Status& status);
  // No further calls.
  void Stop() { state_ = State::kStopped; }

  // Keeps an engine event until the takeover is done.
  void AddEvent(const engine::TaskEvent& event) { events_.push_back(event); }
  // Once, after on_done: the coordinator as the engine found it, if it did, then these events.
  std::vector<engine::TaskEvent> TakeEvents();

 private:
  enum class State : uint8_t { kIdle, kAdopting, kApplying, kStopped };

  void Adopt();
  void OnAdopted(const AsyncEngineCalls::Tasks& tasks);
  void Retry(const std::string& why);

  const std::filesystem::path dir_;
  const bool shared_;
  AsyncEngineCalls* const calls_;
  LoopTaskGroup* const tasks_;
  const TakeoverCallbacks callbacks_;
  State state_ = State::kIdle;
  std::string obstacle_;  // the last one that was noted
  std::vector<engine::TaskStatus> adopted_;
  std::vector<engine::TaskEvent> events_;
};

}  // namespace shoal::controller
