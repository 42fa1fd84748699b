#include "engine/docker/docker_job.h"

#include <algorithm>

#include "base/log.h"

namespace shoal::engine::docker {
namespace {

constexpr std::chrono::milliseconds kLookAfterKill{1000};
constexpr int kSignalBase = 128;  // Docker's and shells' way to tell a signal
constexpr int kSignals = 64;

std::string MemoryText(int64_t bytes) {
  constexpr int64_t kMebi = int64_t{1} << 20;
  return bytes <= 0 ? "" : " of " + std::to_string(bytes / kMebi) + " MiB";
}

TaskEnd EndOf(const std::optional<ContainerState>& state, const DesiredTask& task) {
  TaskEnd end;
  if (!state) {
    end.reason = "ended, it is not known how: its container was removed by somebody else";
    return end;
  }
  const int code = state->exit_code;
  if (code > kSignalBase && code <= kSignalBase + kSignals) {
    end.signal = code - kSignalBase;
  } else {
    end.exit_code = code;
  }
  end.out_of_memory = state->out_of_memory && end.signal == 9;
  end.reason = end.out_of_memory
                   ? "was killed because it needed more than its memory limit" +
                         MemoryText(task.resources.memory_bytes) + "; raise resources.memory"
                   : DescribeEnd(end);
  return end;
}

}  // namespace

// ---- What should exist ----

void DockerJob::Apply(const DesiredJob& desired, TimePoint now) {
  settings_ = desired;
  settings_.tasks.clear();
  int order = 0;
  const auto want = [&](const DesiredTask& wish, const TaskKey& /*key*/, Task* task, bool fresh) {
    // No longer wanted, and ended, but not forgotten yet: as if it had been.
    const bool again = !fresh && !task->wanted && !task->alive && !task->asked;
    task->wanted = true;
    task->desired = wish;
    task->order = order++;
    const bool lost_before = task->phase == TaskPhase::kLost && !task->start_at && !task->busy;
    if (fresh || again || lost_before || task->phase == TaskPhase::kRefused)
      task->ResetForStart(now);
  };
  MatchTasks(desired.tasks, &tasks_, want, [&](Task* task) {
    task->wanted = false;
    Ask(task, now + options_.remove_grace);
  });
}

bool DockerJob::Adopt(const std::vector<ContainerSummary>& containers, TimePoint now) {
  settings_.job_id = id_;
  bool any = false;
  for (const ContainerSummary& container : containers) {
    const TaskLabels& labels = container.task;
    const TaskKey key{labels.role, labels.index};
    int& next = incarnations_[key];
    next = std::max(next, labels.incarnation + 1);
    any = any || container.running;
    auto [it, fresh] = tasks_.try_emplace(key);
    Task& task = it->second;
    if (!fresh && task.incarnation > labels.incarnation) continue;
    task.desired.role = labels.role;
    task.desired.index = labels.index;
    task.desired.restart_if_lost = false;  // its command is not known
    task.order = labels.order;
    task.incarnation = labels.incarnation;
    task.container = container.id;
    task.alive = container.running;
    task.started = now;
    task.phase = container.running          ? TaskPhase::kRunning
                 : container.exit_code == 0 ? TaskPhase::kEnded
                                            : TaskPhase::kLost;
  }
  return any;
}

void DockerJob::Ask(Task* task, TimePoint kill_at) {
  task->start_at.reset();
  task->again = false;
  if (!task->alive && !task->busy) return;
  task->asked = true;
  task->kill_at = kill_at;
}

void DockerJob::Stop(TimePoint kill_at) {
  stopping_ = true;
  for (auto& [key, task] : tasks_) Ask(&task, kill_at);
}

// ---- What is due ----

std::optional<TimePoint> DockerJob::Step(TimePoint now, std::vector<Action>* actions,
                                         std::vector<TaskEvent>* events) {
  std::optional<TimePoint> next;
  for (auto it = tasks_.begin(); it != tasks_.end();) {
    Task& task = it->second;
    if (auto action = Next(it->first, &task, now, events)) {
      task.busy = true;
      actions->push_back(std::move(*action));
    }
    const bool forget = !task.wanted && !task.alive && !task.busy && task.container.empty();
    for (const auto& due : {task.start_at, task.kill_at, task.retry_at, task.replace_at}) {
      if (!task.busy && !forget && due && *due > now && (!next || *due < *next)) next = due;
    }
    it = forget ? tasks_.erase(it) : std::next(it);
  }
  return next;
}

std::optional<Action> DockerJob::Next(const TaskKey& key, Task* task, TimePoint now,
                                      std::vector<TaskEvent>* events) {
  if (task->busy || (task->retry_at && *task->retry_at > now)) return std::nullopt;
  // What was killed and not said to have ended is looked at by and by.
  const bool overdue = task->retry_at && task->killed;
  task->retry_at.reset();
  if (task->alive) {
    if (task->look || overdue) return Begin(Action::Kind::kLook, key, task);
    const bool replace = task->replace_at && *task->replace_at <= now && owned_;
    if (!task->asked && !replace) return std::nullopt;
    const bool kill = !task->killed && (replace || (task->kill_at && *task->kill_at <= now));
    if (!kill && (task->termed || !task->asked)) return std::nullopt;
    task->replaced = replace && !task->asked;
    Action action = Begin(Action::Kind::kSignal, key, task);
    action.signal = kill ? "KILL" : "TERM";
    return action;
  }
  const bool due = task->start_at && *task->start_at <= now;
  if (due && task->wanted && !stopping_ && owned_) {
    BeginStart(key, task, events);
    return Begin(Action::Kind::kStart, key, task);
  }
  if (!task->wanted && !task->container.empty() && !stopping_)
    return Begin(Action::Kind::kRemove, key, task);
  return std::nullopt;
}

Action DockerJob::Begin(Action::Kind kind, const TaskKey& key, Task* task) const {
  Action action;
  action.kind = kind;
  action.key = key;
  action.incarnation = task->incarnation;
  action.order = task->order;
  action.container = task->container;
  if (kind == Action::Kind::kStart) action.task = task->desired;
  return action;
}

void DockerJob::BeginStart(const TaskKey& key, Task* task, std::vector<TaskEvent>* events) {
  task->start_at.reset();
  task->look = task->asked = task->termed = task->killed = task->replaced = false;
  task->kill_at.reset();
  task->replace_at.reset();
  if (std::exchange(task->again, false)) return;
  task->incarnation = incarnations_[key]++;
  task->phase = TaskPhase::kStarting;
  Tell(key, *task, {}, events);
}

// ---- What became of it ----

void DockerJob::Take(const Outcome& outcome, TimePoint now, std::vector<TaskEvent>* events) {
  const auto it = tasks_.find(outcome.action.key);
  if (it == tasks_.end()) return;
  Task& task = it->second;
  task.busy = false;
  switch (outcome.action.kind) {
    case Action::Kind::kStart:
      return TakeStart(outcome, &task, now, events);
    case Action::Kind::kLook:
      return TakeLook(outcome, &task, now, events);
    case Action::Kind::kRemove:
      if (outcome.status.ok()) task.container.clear();
      break;
    case Action::Kind::kSignal: {
      const bool kill = outcome.action.signal == "KILL";
      if (outcome.status.ok()) (kill ? task.killed : task.termed) = true;
      if (kill && outcome.status.ok()) task.retry_at = now + kLookAfterKill;
      break;
    }
  }
  if (outcome.status.ok()) return;
  LogWarning("job {}: {} {}: {}", id_, task.desired.role, task.desired.index,
             outcome.status.message());
  task.retry_at = now + options_.retry;
}

void DockerJob::TakeStart(const Outcome& outcome, Task* task, TimePoint now,
                          std::vector<TaskEvent>* events) {
  const TaskKey& key = outcome.action.key;
  task->container = outcome.container;
  if (outcome.status.ok()) {
    task->alive = true;
    task->started = now;
    task->phase = TaskPhase::kRunning;
    return Tell(key, *task, {}, events);
  }
  if (stopping_ || !task->wanted) {
    TaskEnd end;
    end.reason = "was not started: the job was stopped meanwhile";
    task->phase = TaskPhase::kEnded;
    return Tell(key, *task, std::move(end), events);
  }
  if (outcome.status.retryable()) {  // the daemon is away: nothing was found out about the task
    LogWarning("job {}: {} {} waits: {}", id_, key.first, key.second, outcome.status.message());
    task->again = true;
    task->start_at = now + options_.retry;
    return;
  }
  TaskEnd end;
  end.reason = outcome.status.message();
  task->phase = TaskPhase::kRefused;
  Tell(key, *task, std::move(end), events);
}

void DockerJob::TakeLook(const Outcome& outcome, Task* task, TimePoint now,
                         std::vector<TaskEvent>* events) {
  if (!outcome.status.ok()) {
    LogWarning("job {}: {} {}: {}", id_, outcome.action.key.first, outcome.action.key.second,
               outcome.status.message());
    task->retry_at = now + options_.retry;
    return;
  }
  task->look = false;
  if (outcome.state && outcome.state->running) {
    if (task->killed) task->retry_at = now + kLookAfterKill;
    return;
  }
  task->alive = false;
  if (!outcome.state) task->container.clear();
  TaskEnd end = EndOf(outcome.state, task->desired);
  if (task->replaced)
    end.reason =
        "was killed to be started again: somebody had paused its container (docker pause) "
        "for " +
        FormatDuration(options_.pause_patience);
  task->replace_at.reset();
  task->TakeEnd({options_.restart, task->desired.restart_if_lost, stopping_}, now, &end,
                [&] { return outcome.log_tail; });
  Tell(outcome.action.key, *task, std::move(end), events);
}

void DockerJob::Notice(const TaskKey& key, int incarnation) {
  const auto it = tasks_.find(key);
  if (it != tasks_.end() && it->second.incarnation == incarnation) it->second.look = true;
}

void DockerJob::NoticePause(const TaskKey& key, int incarnation, bool paused, TimePoint now) {
  const auto it = tasks_.find(key);
  if (it != tasks_.end() && it->second.incarnation == incarnation)
    it->second.SetPaused(paused, now + options_.pause_patience);
}

void DockerJob::Compare(const std::map<std::string, bool>& running, TimePoint now) {
  for (auto& [key, task] : tasks_) {
    if (!task.alive) continue;
    const auto found = running.find(task.container);
    if (found == running.end()) {
      task.look = true;
    } else {
      task.SetPaused(found->second, now + options_.pause_patience);
    }
  }
}

void DockerJob::Tell(const TaskKey& key, const Task& task, TaskEnd end,
                     std::vector<TaskEvent>* events) const {
  events->push_back({id_, key.first, key.second, task.incarnation, task.phase, std::move(end)});
}

// ---- Questions ----

std::vector<TaskStatus> DockerJob::List() const {
  std::vector<std::pair<int, TaskStatus>> ordered;
  for (const auto& [key, task] : tasks_) {
    ordered.push_back({task.order, {key.first, key.second, task.incarnation, task.phase, 0}});
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TaskStatus> list;
  for (auto& [order, status] : ordered) list.push_back(std::move(status));
  return list;
}

bool DockerJob::AnyAlive() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const auto& entry) { return entry.second.alive || entry.second.busy; });
}

bool DockerJob::Gone(const TaskKey& key) const {
  const auto it = tasks_.find(key);
  return it != tasks_.end() && it->second.phase != TaskPhase::kStarting &&
         it->second.phase != TaskPhase::kRunning;
}

std::string DockerJob::ContainerOf(const TaskKey& key) const {
  const auto it = tasks_.find(key);
  return it == tasks_.end() ? "" : it->second.container;
}

}  // namespace shoal::engine::docker
