#include "engine/agent/task_table.h"

#include <algorithm>
#include <set>

namespace shoal::engine {

void TaskTable::Replay(const TaskEvent& event) {
  const Key key{event.role, event.index};
  auto [it, fresh] = tasks_.try_emplace(key);
  Task& task = it->second;
  if (fresh) order_.push_back(key);
  task.incarnation = event.incarnation;
  task.phase = event.phase;
  task.alive = event.phase == TaskPhase::kStarting || event.phase == TaskPhase::kRunning;
  incarnations_[key] = event.incarnation + 1;
}

void TaskTable::Reset() {
  tasks_.clear();
  order_.clear();
}

void TaskTable::MarkRunningLost(TimePoint now, const std::string& reason) {
  for (const Key& key : order_) {
    Task& task = tasks_.at(key);
    if (task.alive) {
      task.alive = false;
      task.phase = TaskPhase::kLost;
      TaskEnd end;
      end.reason = reason;
      AddEvent(key, task, std::move(end));
    }
    if (task.phase == TaskPhase::kLost) task.start_at = now;
  }
}

void TaskTable::ApplyDesiredState(const DesiredState& orders, TimePoint now) {
  rules_ = orders.restart;
  std::set<Key> named;
  for (const AgentTask& wish : orders.tasks) {
    const Key key{wish.task.role, wish.task.index};
    named.insert(key);
    auto [it, fresh] = tasks_.try_emplace(key);
    Task& task = it->second;
    if (fresh) order_.push_back(key);
    // It was removed and listed again; the state in between may have been missed.
    const bool again =
        !fresh && (task.listed ? wish.revision != task.ordered.revision : task.alive);
    const bool back = !fresh && !task.listed && !task.alive && !task.start_at;
    // A replayed task that ended with 0 stays ended.
    const bool replayed = back && task.ordered.task.role.empty();
    const bool ended = task.phase == TaskPhase::kEnded;
    task.listed = true;
    task.ordered = wish;
    if (again && task.alive) {
      RequestStop(&task, now + orders.grace);
      task.start_at = now;
      continue;
    }
    const bool refused = !fresh && task.phase == TaskPhase::kRefused;
    if (fresh || again || refused || (back && !(replayed && ended))) task.ResetForStart(now);
  }
  for (auto& [key, task] : tasks_) {
    if (named.contains(key)) continue;
    task.listed = false;
    RequestStop(&task, now + orders.grace);
  }
  if (orders.stop) StopAll(now + orders.grace, false);
}

void TaskTable::RequestStop(Task* task, TimePoint kill_at) {
  task->start_at.reset();
  if (!task->alive) return;
  if (!task->stop_requested) task->term_due = true;
  task->stop_requested = true;
  if (!task->kill_at || kill_at < *task->kill_at) task->kill_at = kill_at;
}

void TaskTable::StopAll(TimePoint kill_at, bool lost) {
  stopping_ = true;
  stopping_lost_ = lost;
  for (auto& [key, task] : tasks_) RequestStop(&task, kill_at);
}

bool TaskTable::IsCurrent(const Incarnation& life) const {
  const auto found = tasks_.find(life.key);
  return found != tasks_.end() && found->second.alive &&
         found->second.incarnation == life.incarnation;
}

const AgentTask* TaskTable::Find(const Key& key) const {
  const auto found = tasks_.find(key);
  return found == tasks_.end() ? nullptr : &found->second.ordered;
}

void TaskTable::OnStarted(const Incarnation& life, TimePoint now) {
  if (!IsCurrent(life)) return;
  Task& task = tasks_.at(life.key);
  if (task.phase == TaskPhase::kRunning) return;
  task.phase = TaskPhase::kRunning;
  task.started = now;
  AddEvent(life.key, task, {});
}

void TaskTable::OnEnded(const Incarnation& life, TimePoint now, TaskEnd end,
                        const std::string& words) {
  if (!IsCurrent(life)) return;
  Task& task = tasks_.at(life.key);
  task.alive = task.term_due = false;
  task.ApplyEnd({rules_, task.ordered.task.restart_if_lost, stopping_}, now, &end,
                [&] { return words; });
  if (stopping_lost_ && task.listed) task.phase = TaskPhase::kLost;
  AddEvent(life.key, task, std::move(end));
}

void TaskTable::OnRefused(const Incarnation& life, const std::string& reason) {
  if (!IsCurrent(life)) return;
  Task& task = tasks_.at(life.key);
  task.alive = task.term_due = task.stop_requested = false;
  task.kill_at.reset();
  task.phase = TaskPhase::kRefused;
  TaskEnd end;
  end.reason = reason;
  AddEvent(life.key, task, std::move(end));
}

TaskTable::DueActions TaskTable::Step(TimePoint now) {
  DueActions due;
  const auto consider = [&](const std::optional<TimePoint>& at) {
    if (at && (!due.next || *at < *due.next)) due.next = at;
  };
  std::erase_if(order_, [&](const Key& key) {
    Task& task = tasks_.at(key);
    if (task.start_at && !task.alive && *task.start_at <= now && task.listed && !stopping_) {
      task.start_at.reset();
      task.incarnation = incarnations_[key]++;
      task.phase = TaskPhase::kStarting;
      task.alive = true;
      task.started = now;
      AddEvent(key, task, {});
      due.start.push_back({key, task.incarnation});
    }
    const Incarnation life{key, task.incarnation};
    // SIGTERM is sent only once the task runs and can handle it.
    if (task.term_due && task.phase == TaskPhase::kRunning) {
      task.term_due = false;
      due.term.push_back(life);
    }
    if (task.kill_at && *task.kill_at <= now) {
      task.kill_at.reset();
      due.kill.push_back(life);
    }
    if (!task.listed && !task.alive) {
      tasks_.erase(key);
      return true;
    }
    if (!task.alive) consider(task.start_at);
    consider(task.kill_at);
    return false;
  });
  return due;
}

void TaskTable::AddEvent(const Key& key, const Task& task, TaskEnd end) {
  events_.push_back({job_id_, key.first, key.second, task.incarnation, task.phase, std::move(end)});
}

std::vector<TaskEvent> TaskTable::DrainEvents() { return std::exchange(events_, {}); }

bool TaskTable::AnyAlive() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const auto& entry) { return entry.second.alive; });
}

}  // namespace shoal::engine
