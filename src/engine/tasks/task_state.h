// State of one task, for the engines that restart lost tasks themselves (local, docker, kubernetes,
// and the agents of slurm and marathon).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

using TaskKey = std::pair<std::string, int>;  // role, index

// Compares the tasks of an Apply with a table of tasks (a map by TaskKey). Calls
// want(wish, key, task, fresh) for each task of the Apply in its order, where `fresh` means that
// the entry was added to the table by this call, and unwant(task) for each other entry.
template <typename Table, typename Want, typename Unwant>
void MatchTasks(const std::vector<DesiredTask>& wishes, Table* table, Want want, Unwant unwant) {
  std::set<TaskKey> named;
  for (const DesiredTask& wish : wishes) {
    const TaskKey key{wish.role, wish.index};
    named.insert(key);
    const auto [it, fresh] = table->try_emplace(key);
    want(wish, key, &it->second, fresh);
  }
  for (auto& [key, task] : *table) {
    if (!named.contains(key)) unwant(&task);
  }
}

// Phases: kStarting → kRunning → kEnded, or kLost → (back-off) → kStarting of the next incarnation,
// or kRefused once the restart rules give up. Plain value; not thread-safe. All times are of one
// clock.
struct TaskState {
  int incarnation = 0;
  TaskPhase phase = TaskPhase::kStarting;
  bool stop_requested = false;  // was told to stop: its end is not a loss
  bool listed = true;           // listed by the last Apply
  RestartHistory history;
  TimePoint started;
  std::optional<TimePoint> start_at;  // when the next incarnation is due
  std::optional<TimePoint> kill_at;   // when a task that was told to stop is killed

  // State of the job that decides what an end of a task means.
  struct RestartContext {
    RestartRules restart;
    bool restart_if_lost = true;
    bool stopping = false;  // no task is started any more
  };
  // Reads the last lines of a task's own log; called only if they are needed.
  using ReadLogTail = std::function<std::string()>;

  // Returns the task to its initial state, due to start at `now`.
  void ResetForStart(TimePoint now);
  // Records an end: sets the phase, start_at if another incarnation is to start, and the reason of
  // `end` if the task is given up.
  void ApplyEnd(const RestartContext& context, TimePoint now, TaskEnd* end,
                const ReadLogTail& words);
  // Records an end that is a loss whatever its exit code.
  void ApplyLoss(const RestartRules& rules, TimePoint now, TaskEnd* end, const ReadLogTail& words);
};

}  // namespace shoal::engine
