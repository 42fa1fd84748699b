// The tasks of one job as a remote agent sees them: desired state, current state, due actions.
// Performs no I/O: the agent (slurm/agent.cc, marathon/executor.cc) carries out the actions that
// Step returns and reports their results.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/agent/desired_state.h"
#include "engine/engine.h"
#include "engine/tasks/task_state.h"

namespace shoal::engine {

// Call order: Replay for each event of an earlier agent, MarkRunningLost once, then
// ApplyDesiredState for each desired state, Step until nothing is due, OnStarted/OnEnded/OnRefused
// for each result, DrainEvents after each step. Not thread-safe. All times are of one clock.
class TaskTable {
 public:
  using Key = std::pair<std::string, int>;
  // One start of a task.
  struct Incarnation {
    Key key;
    int incarnation = 0;
    auto operator<=>(const Incarnation&) const = default;
  };
  // Actions that the agent must carry out now, and the time of the next call of Step.
  struct DueActions {
    std::vector<Incarnation> start;  // already in phase kStarting, with an event for it
    std::vector<Incarnation> term;
    std::vector<Incarnation> kill;
    std::optional<TimePoint> next;
  };

  explicit TaskTable(std::string job_id) : job_id_(std::move(job_id)) {}

  // Applies an event that an earlier agent of the job logged, in log order.
  void Replay(const TaskEvent& event);
  // Forgets all tasks except for their incarnation numbers: the tasks were removed and are to be
  // started as new ones.
  void Reset();
  // Marks every task that was running as lost for this reason: its processes ended with the
  // earlier agent.
  void MarkRunningLost(TimePoint now, const std::string& reason);

  void ApplyDesiredState(const DesiredState& orders, TimePoint now);
  // Starts no task any more and kills what still runs at `kill_at`. `lost`: the ends count as
  // losses, after which another agent starts the tasks again.
  void StopAll(TimePoint kill_at, bool lost);

  void OnStarted(const Incarnation& life, TimePoint now);
  // `words`: the tail of the task's log, used in the reason if the task is given up.
  void OnEnded(const Incarnation& life, TimePoint now, TaskEnd end, const std::string& words);
  void OnRefused(const Incarnation& life, const std::string& reason);

  DueActions Step(TimePoint now);
  // Events since the last call, in order.
  std::vector<TaskEvent> DrainEvents();

  bool AnyAlive() const;
  bool IsCurrent(const Incarnation& life) const;
  const AgentTask* Find(const Key& key) const;

 private:
  struct Task : TaskState {
    Task() { listed = false; }  // until a desired state lists it
    AgentTask ordered;
    bool alive = false;  // started, and no end was reported
    bool term_due = false;
  };
  void RequestStop(Task* task, TimePoint kill_at);
  void AddEvent(const Key& key, const Task& task, TaskEnd end);

  std::string job_id_;
  RestartRules rules_;
  bool stopping_ = false;
  bool stopping_lost_ = false;
  std::map<Key, Task> tasks_;
  std::vector<Key> order_;           // order of the desired state
  std::map<Key, int> incarnations_;  // next incarnation number of every task ever seen
  std::vector<TaskEvent> events_;
};

}  // namespace shoal::engine
