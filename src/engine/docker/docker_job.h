// One job in containers: its tasks' states, and what has to be asked of the daemon next. No call is
// made here: Step gives actions, the engine's workers do them, Take hears what became of them.
//
//   named ──kStart──▶ running ──"die" or a relist──kLook──▶ ended | lost ──back-off──▶ kStart
//                        └──asked: kSignal TERM, at the time KILL──▶ … ──not named: kRemove──▶
//                        forgotten
//
// Owned by DockerEngine and called under its lock. At most one action of a task is under way.
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

struct Action {
  enum class Kind : uint8_t { kStart, kSignal, kLook, kRemove };
  Kind kind = Kind::kLook;
  TaskKey key;
  int incarnation = 0;
  int order = 0;
  DesiredTask task;       // kStart
  std::string container;  // all but kStart: whose; kStart: the one before it, to be removed
  std::string signal;     // kSignal
};

struct Outcome {
  Action action;
  Status status;
  std::string container;                // kStart
  std::optional<ContainerState> state;  // kLook; nothing: there is no such container
  std::string log_tail;                 // kLook, of a bad end
};

struct DockerJobOptions {
  RestartRules restart;
  std::chrono::milliseconds remove_grace{10'000};
  std::chrono::milliseconds retry{500};  // when the daemon did not answer
  // Of a container that somebody has paused. The coordinator takes its launcher for dead after as
  // long, and waits for another one.
  std::chrono::milliseconds pause_patience{30'000};
};

class DockerJob {
 public:
  // `owned`: this engine looks after the job; else it only watches.
  DockerJob(std::string id, bool owned, DockerJobOptions options)
      : id_(std::move(id)), owned_(owned), options_(options) {}

  void Apply(const DesiredJob& desired, TimePoint now);
  // Of containers that an earlier engine made. False if none runs.
  bool Adopt(const std::vector<ContainerSummary>& containers, TimePoint now);
  // SIGTERM for all, SIGKILL for what still runs at `kill_at`. Nothing is started any more.
  void Stop(TimePoint kill_at);
  // What is due. The time of the next thing to do.
  std::optional<TimePoint> Step(TimePoint now, std::vector<Action>* actions,
                                std::vector<TaskEvent>* events);
  void Take(const Outcome& outcome, TimePoint now, std::vector<TaskEvent>* events);
  // The daemon said that this incarnation has ended.
  void Notice(const TaskKey& key, int incarnation);
  // The daemon said that it was paused, or goes on.
  void NoticePause(const TaskKey& key, int incarnation, bool paused, TimePoint now);
  // All that runs now, and is paused or not: what is missing has ended unnoticed.
  void Compare(const std::map<std::string, bool>& running, TimePoint now);

  std::vector<TaskStatus> List() const;
  bool AnyAlive() const;  // or under way
  // It was made, and has ended.
  bool Gone(const TaskKey& key) const;
  // The latest container of a task; empty if it has none.
  std::string ContainerOf(const TaskKey& key) const;
  bool stopping() const { return stopping_; }
  bool owned() const { return owned_; }
  // As applied last, without tasks.
  const DesiredJob& settings() const { return settings_; }

 private:
  struct Task : TaskState {
    DesiredTask desired;
    int order = 0;
    std::string container;
    bool alive = false;                 // its container runs, as far as we know
    bool busy = false;                  // an action is under way
    bool look = false;                  // it is said to have ended
    bool again = false;                 // the same incarnation is tried once more
    bool termed = false;                // SIGTERM was sent
    bool killed = false;                // SIGKILL was sent
    std::optional<TimePoint> retry_at;  // nothing before
    // It is paused, and replaced then: killed, with this as the reason of its end.
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
  void TakeStart(const Outcome& outcome, Task* task, TimePoint now, std::vector<TaskEvent>* events);
  void TakeLook(const Outcome& outcome, Task* task, TimePoint now, std::vector<TaskEvent>* events);
  void Ask(Task* task, TimePoint kill_at);
  void Tell(const TaskKey& key, const Task& task, TaskEnd end,
            std::vector<TaskEvent>* events) const;

  const std::string id_;
  const bool owned_;
  const DockerJobOptions options_;
  DesiredJob settings_;
  bool stopping_ = false;
  std::map<TaskKey, Task> tasks_;
  std::map<TaskKey, int> incarnations_;  // next one of each that ever was
};

}  // namespace shoal::engine::docker
