// Calls of a job's engine. Calls that may block on a daemon or cluster for minutes run on other
// threads, so that the loop continues to serve signals and other jobs. Used by job_run.cc.
#pragma once

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "controller/files/cleanup_lock.h"
#include "controller/files/state_home.h"
#include "controller/store/lease.h"
#include "controller/threads/executor.h"
#include "controller/threads/loop_task_group.h"
#include "engine/engine.h"

namespace shoal::controller {

// All pointers must outlive the calls; `executor` may be null: then engines that have no queue are
// called on the calling thread, which is fast, and others on a thread for each call.
struct EngineCallOptions {
  engine::Engine* engine = nullptr;
  std::string instance = {};  // the engine's name in records
  StateHome home{std::filesystem::path()};
  const Clock* clock = nullptr;
  std::string job = {};
  LoopTaskGroup* tasks = nullptr;
  Executor* executor = nullptr;
  Lead lead = {};
};

// Must be used on the loop's thread. Results are delivered there too: before the return for a call
// on the calling thread, otherwise later, and not after the destruction.
class AsyncEngineCalls {
 public:
  using Done = std::function<void(const Status&)>;
  using Tasks = Result<std::vector<engine::TaskStatus>>;

  explicit AsyncEngineCalls(EngineCallOptions options) : options_(std::move(options)) {}
  // Interrupts an Apply or Adopt and waits for all calls in progress.
  ~AsyncEngineCalls();
  AsyncEngineCalls(const AsyncEngineCalls&) = delete;
  AsyncEngineCalls& operator=(const AsyncEngineCalls&) = delete;

  // Neither must be called before the result of the previous one of both. Aborted, without a call
  // of the engine, while the lead is not held.
  void Apply(engine::DesiredJob desired, Done done);
  void Adopt(std::function<void(const Tasks&)> done);

  // Acquires the cleanup lock (cleanup_lock.h), before the job's end is recorded; held until
  // CleanUp is done.
  void BeginCleanup() { cleanup_lock_ = AcquireCleanupLock(options_.home.job_dir(options_.job)); }
  // The last call: interrupts an Apply or Adopt, stops the job and removes its scratch files.
  // Resources that the engine could not remove are recorded (leftovers.h) and returned to `done` as
  // an error. Never on the calling thread.
  void CleanUp(JobState state, Done done);
  // Makes CleanUp finish soon, even if the engine does not answer.
  void Interrupt() { options_.engine->Interrupt(options_.job); }

  // "; last output: …" with the last output line of a task from the engine, or an empty text.
  void FindLastLine(const std::string& role, int index,
                    std::function<void(const std::string&)> done);

 private:
  // True if calls of the engine may be made on the loop's thread.
  bool inline_calls() const {
    return options_.executor == nullptr && !options_.engine->HasOwnQueue();
  }
  std::future<void> Start(std::function<void()> call) const;

  const EngineCallOptions options_;
  UniqueFd cleanup_lock_;     // owned by the loop's thread, later by CleanUp's
  std::future<void> change_;  // an Apply or Adopt
  std::future<void> cleanup_;
};

}  // namespace shoal::controller
