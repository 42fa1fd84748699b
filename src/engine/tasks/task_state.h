// Where one task stands: what the engines that start tasks again by themselves keep of each.
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

// Holds what an Apply names against a table of tasks (a map by TaskKey): want(wish, key, task,
// fresh) for each that is named, in that order, `fresh` if the table had no such entry, which it
// has now; unwant(task) for each other one.
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

// Plain value; not thread-safe. All times are of one clock.
struct TaskState {
  int incarnation = 0;
  TaskPhase phase = TaskPhase::kStarting;
  bool asked = false;  // told to stop: its end is no loss
  bool wanted = true;  // named by the last Apply
  RestartHistory history;
  TimePoint started;
  std::optional<TimePoint> start_at;  // the next incarnation is due
  std::optional<TimePoint> kill_at;   // what was told to stop is given no more time

  // What is true of the job when one of its tasks ends.
  struct RestartContext {
    RestartRules restart;
    bool restart_if_lost = true;
    bool stopping = false;  // nothing is started any more
  };
  // The last lines of a task's own log, read only when they are needed.
  using ReadLogTail = std::function<std::string()>;

  // As if it had never been: it is due now.
  void ResetForStart(TimePoint now);
  // It has ended: sets the phase, start_at if there is to be another incarnation, and the end's
  // reason if that is given up.
  void TakeEnd(const RestartContext& now_true, TimePoint now, TaskEnd* end,
               const ReadLogTail& words);
  // Likewise for an end that is a loss, whatever its exit code.
  void ApplyLoss(const RestartRules& rules, TimePoint now, TaskEnd* end, const ReadLogTail& words);
};

}  // namespace shoal::engine
