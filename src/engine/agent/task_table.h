// The tasks of one job as its agent sees them: what is ordered, what runs, what is due. No I/O;
// the agent (agent.cc) starts and signals what Step says and tells what became of it.
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

// Not thread-safe. All times are of one clock.
class TaskTable {
 public:
  using Key = std::pair<std::string, int>;
  // One start of a task.
  struct Incarnation {
    Key key;
    int incarnation = 0;
    auto operator<=>(const Incarnation&) const = default;
  };
  struct DueActions {
    std::vector<Incarnation> start;  // already marked, and told, as starting
    std::vector<Incarnation> term;
    std::vector<Incarnation> kill;
    std::optional<TimePoint> next;
  };

  explicit TaskTable(std::string job_id) : job_id_(std::move(job_id)) {}

  // What an earlier agent of the job wrote, in its order; then BeginAgain, once.
  void Replay(const TaskEvent& event);
  // They all were to end and are all to be started anew; only the numbers of their lives go on.
  void Forget();
  // Nothing of that runs any more: it was lost, for this reason.
  void BeginAgain(TimePoint now, const std::string& reason);

  void Take(const DesiredState& orders, TimePoint now);
  // From now on nothing is started; what still runs at `kill_at` is killed. `lost`: its ends are
  // losses, to be made good by another agent.
  void StopAll(TimePoint kill_at, bool lost);

  void Started(const Incarnation& life, TimePoint now);
  // `words`: what it said last, should it be given up.
  void Ended(const Incarnation& life, TimePoint now, TaskEnd end, const std::string& words);
  void Refused(const Incarnation& life, const std::string& reason);

  DueActions Step(TimePoint now);
  // What is to be told since the last call, in order.
  std::vector<TaskEvent> TakeEvents();

  bool AnyAlive() const;
  bool IsCurrent(const Incarnation& life) const;
  const AgentTask* Find(const Key& key) const;

 private:
  struct Task : TaskState {
    Task() { wanted = false; }  // until the orders name it
    AgentTask ordered;
    bool alive = false;  // started, as far as we know
    bool term_due = false;
  };
  void Ask(Task* task, TimePoint kill_at);
  void Tell(const Key& key, const Task& task, TaskEnd end);

  std::string job_id_;
  RestartRules rules_;
  bool stopping_ = false;
  bool stopping_lost_ = false;
  std::map<Key, Task> tasks_;
  std::vector<Key> order_;           // as the orders named them
  std::map<Key, int> incarnations_;  // next one of each that ever was
  std::vector<TaskEvent> events_;
};

}  // namespace shoal::engine
