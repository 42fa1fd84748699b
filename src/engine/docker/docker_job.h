// One job in containers: the states of its tasks and the next requests to the daemon. Makes no
// request itself: Step returns actions, the engine's workers execute them, and ApplyOutcome
// receives the outcomes.
//
//   listed ──kStart──▶ running ──event or relist──kInspect──▶ ended | lost ──back-off──▶ kStart
//                         └──told to stop: kSignal TERM, later KILL──▶ … ──not listed: kRemove──▶
//                         forgotten
//
// Owned by DockerEngine and called under its lock. At most one action per task is in progress.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/docker/decode.h"
#include "engine/engine.h"
#include "engine/tasks/restart_rules.h"
#include "engine/tasks/task_state.h"

namespace shoal::engine::docker {

// A request to the daemon about one task. Plain value.
struct Action {
  enum class Kind : uint8_t { kStart, kSignal, kInspect, kRemove };
  Kind kind = Kind::kInspect;
  TaskKey key;
  int incarnation = 0;
  int order = 0;
  DesiredTask task;       // kStart
  std::string container;  // its container; kStart: the previous one, to be removed
  std::string signal;     // kSignal
};

// The result of an action. Plain value.
struct Outcome {
  Action action;
  Status status;
  std::string container;                // kStart
  std::optional<ContainerState> state;  // kInspect; nothing: the container does not exist
  std::string log_tail;                 // kInspect, if the task failed
};

// Plain value.
struct DockerJobOptions {
  RestartRules restart;
  std::chrono::milliseconds remove_grace{10'000};
  std::chrono::milliseconds retry{500};  // delay after an error of the daemon
  // Time after which a paused container is replaced. After the same time the coordinator declares
  // its launcher lost and waits for another one.
  std::chrono::milliseconds pause_patience{30'000};
};

// Apply (or Adopt), then Step after every change: it returns actions, whose outcomes go to
// ApplyOutcome in any order. Not thread-safe; needs no I/O.
class DockerJob {
 public:
  // `owned`: this engine manages the job; otherwise it only watches it.
  DockerJob(std::string id, bool owned, DockerJobOptions options)
      : id_(std::move(id)), owned_(owned), options_(options) {}

  void Apply(const DesiredJob& desired, TimePoint now);
  // Takes over the containers of an earlier engine. False if none runs.
  bool Adopt(const std::vector<ContainerSummary>& containers, TimePoint now);
  // Sends SIGTERM to all tasks, and SIGKILL at `kill_at`. Starts no task any more.
  void Stop(TimePoint kill_at);
  // Appends due actions and events. Returns the time of the next action.
  std::optional<TimePoint> Step(TimePoint now, std::vector<Action>* actions,
                                std::vector<TaskEvent>* events);
  void ApplyOutcome(const Outcome& outcome, TimePoint now, std::vector<TaskEvent>* events);
  // The daemon reported the end of this incarnation.
  void OnContainerEnd(const TaskKey& key, int incarnation);
  // The daemon reported that this incarnation was paused or unpaused.
  void OnPauseChange(const TaskKey& key, int incarnation, bool paused, TimePoint now);
  // All running containers, with whether they are paused. A task whose container is missing has
  // ended without an event.
  void ReconcileRunning(const std::map<std::string, bool>& running, TimePoint now);

  std::vector<TaskStatus> List() const;
  bool AnyAlive() const;  // or under way
  // The task was started and has ended.
  bool HasEnded(const TaskKey& key) const;
  // The latest container of a task; empty if it has none.
  std::string ContainerOf(const TaskKey& key) const;
  bool stopping() const { return stopping_; }
  bool owned() const { return owned_; }
  // Another engine manages the job from now on; this one starts no task any more.
  void Disown() { owned_ = false; }
  // Settings of the last Apply, without tasks.
  const DesiredJob& settings() const { return settings_; }

 private:
  struct Task : TaskState {
    DesiredTask desired;
    int order = 0;
    std::string container;
    bool alive = false;                 // its container runs, as far as known
    bool busy = false;                  // an action is in progress
    bool inspect_due = false;           // an end was reported: inspect it
    bool retry_start = false;           // start the same incarnation once more
    bool term_sent = false;             // SIGTERM was sent
    bool kill_sent = false;             // SIGKILL was sent
    std::optional<TimePoint> retry_at;  // no action before
    // Set while paused: the time at which the container is killed and replaced.
    std::optional<TimePoint> replace_at;
    bool replaced = false;

    void SetPaused(bool paused, TimePoint until) {
      if (paused && !replace_at) replace_at = until;
      if (!paused) replace_at.reset();
    }
  };

  std::optional<Action> Next(const TaskKey& key, Task* task, TimePoint now,
                             std::vector<TaskEvent>* events);
  Action Begin(Action::Kind kind, const TaskKey& key, Task* task) const;
  void BeginStart(const TaskKey& key, Task* task, std::vector<TaskEvent>* events);
  void ApplyStartOutcome(const Outcome& outcome, Task* task, TimePoint now,
                         std::vector<TaskEvent>* events);
  void ApplyInspectOutcome(const Outcome& outcome, Task* task, TimePoint now,
                           std::vector<TaskEvent>* events);
  void RequestStop(Task* task, TimePoint kill_at);
  void AddEvent(const TaskKey& key, const Task& task, TaskEnd end,
                std::vector<TaskEvent>* events) const;

  const std::string id_;
  bool owned_;
  const DockerJobOptions options_;
  DesiredJob settings_;
  bool stopping_ = false;
  std::map<TaskKey, Task> tasks_;
  std::map<TaskKey, int> incarnations_;  // next incarnation number of every task ever seen
};

}  // namespace shoal::engine::docker
