#include "engine/docker/docker_job.h"

#include <algorithm>

#include "base/log.h"

namespace shoal::engine::docker {
namespace {

constexpr std::chrono::milliseconds kInspectAfterKill{1000};
constexpr int kSignalBase = 128;  // exit code 128 + N means signal N
constexpr int kSignals = 64;

std::string MemoryText(int64_t bytes) {
  constexpr int64_t kMebi = int64_t{1} << 20;
  return bytes <= 0 ? "" : " of " + std::to_string(bytes / kMebi) + " MiB";
}

TaskEnd EndOf(const std::optional<ContainerState>& state, const DesiredTask& task) {
  TaskEnd end;
  if (!state) {
    end.reason = "ended with an unknown status: its container was removed outside of Shoal";
    return end;
  }
  const int code = state->exit_code;
  if (code > kSignalBase && code <= kSignalBase + kSignals) {
    end.signal = code - kSignalBase;
  } else {
    end.exit_code = code;
  }
  end.out_of_memory = state->out_of_memory && end.signal == 9;
  const int64_t memory = task.resources.memory_bytes;
  if (end.out_of_memory) {
    end.reason = "was killed because it needed more than its memory limit" + MemoryText(memory) +
                 "; raise resources.memory";
  } else {
    end.reason = DescribeEnd(end);
    // Docker does not report a kill for lack of memory in the first moments of a container
    // (containerd's runtime begins to watch after the start).
    if (end.signal == 9 && memory > 0)
      end.reason += ", by its memory limit" + MemoryText(memory) + " or from outside of Shoal";
  }
  return end;
}

}  // namespace

// ---- What should exist ----

void DockerJob::Apply(const DesiredJob& desired, TimePoint now) {
  settings_ = desired;
  settings_.tasks.clear();
  int order = 0;
  const auto want = [&](const DesiredTask& wish, const TaskKey& /*key*/, Task* task, bool fresh) {
    // Was removed and has ended, but is still in the table: treat it as new.
    const bool again = !fresh && !task->listed && !task->alive && !task->stop_requested;
    task->listed = true;
    task->desired = wish;
    task->order = order++;
    const bool lost_before = task->phase == TaskPhase::kLost && !task->start_at && !task->busy;
    if (fresh || again || lost_before || task->phase == TaskPhase::kRefused)
      task->ResetForStart(now);
  };
  MatchTasks(desired.tasks, &tasks_, want, [&](Task* task) {
    task->listed = false;
    RequestStop(task, now + options_.remove_grace);
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

void DockerJob::RequestStop(Task* task, TimePoint kill_at) {
  task->start_at.reset();
  task->retry_start = false;
  if (!task->alive && !task->busy) return;
  task->stop_requested = true;
  task->kill_at = kill_at;
}

void DockerJob::Stop(TimePoint kill_at) {
  stopping_ = true;
  for (auto& [key, task] : tasks_) RequestStop(&task, kill_at);
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
    const bool forget = !task.listed && !task.alive && !task.busy && task.container.empty();
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
  // A task that was killed without a reported end is inspected periodically.
  const bool overdue = task->retry_at && task->kill_sent;
  task->retry_at.reset();
  if (task->alive) {
    if (task->inspect_due || overdue) return Begin(Action::Kind::kInspect, key, task);
    const bool replace = task->replace_at && *task->replace_at <= now && owned_;
    if (!task->stop_requested && !replace) return std::nullopt;
    const bool kill = !task->kill_sent && (replace || (task->kill_at && *task->kill_at <= now));
    if (!kill && (task->term_sent || !task->stop_requested)) return std::nullopt;
    task->replaced = replace && !task->stop_requested;
    Action action = Begin(Action::Kind::kSignal, key, task);
    action.signal = kill ? "KILL" : "TERM";
    return action;
  }
  const bool due = task->start_at && *task->start_at <= now;
  if (due && task->listed && !stopping_ && owned_) {
    BeginStart(key, task, events);
    return Begin(Action::Kind::kStart, key, task);
  }
  if (!task->listed && !task->container.empty() && !stopping_)
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
  task->inspect_due = task->stop_requested = task->term_sent = task->kill_sent = task->replaced =
      false;
  task->kill_at.reset();
  task->replace_at.reset();
  if (std::exchange(task->retry_start, false)) return;
  task->incarnation = incarnations_[key]++;
  task->phase = TaskPhase::kStarting;
  AddEvent(key, *task, {}, events);
}

// ---- What became of it ----

void DockerJob::ApplyOutcome(const Outcome& outcome, TimePoint now,
                             std::vector<TaskEvent>* events) {
  const auto it = tasks_.find(outcome.action.key);
  if (it == tasks_.end()) return;
  Task& task = it->second;
  task.busy = false;
  switch (outcome.action.kind) {
    case Action::Kind::kStart:
      return ApplyStartOutcome(outcome, &task, now, events);
    case Action::Kind::kInspect:
      return ApplyInspectOutcome(outcome, &task, now, events);
    case Action::Kind::kRemove:
      if (outcome.status.ok()) task.container.clear();
      break;
    case Action::Kind::kSignal: {
      const bool kill = outcome.action.signal == "KILL";
      if (outcome.status.ok()) (kill ? task.kill_sent : task.term_sent) = true;
      if (kill && outcome.status.ok()) task.retry_at = now + kInspectAfterKill;
      break;
    }
  }
  if (outcome.status.ok()) return;
  LogWarning("job {}: {} {}: {}", id_, task.desired.role, task.desired.index,
             outcome.status.message());
  task.retry_at = now + options_.retry;
}

void DockerJob::ApplyStartOutcome(const Outcome& outcome, Task* task, TimePoint now,
                                  std::vector<TaskEvent>* events) {
  const TaskKey& key = outcome.action.key;
  task->container = outcome.container;
  if (outcome.status.ok()) {
    task->alive = true;
    task->started = now;
    task->phase = TaskPhase::kRunning;
    return AddEvent(key, *task, {}, events);
  }
  if (stopping_ || !task->listed) {
    TaskEnd end;
    end.reason = "was not started: the job was stopped meanwhile";
    task->phase = TaskPhase::kEnded;
    return AddEvent(key, *task, std::move(end), events);
  }
  if (outcome.status.retryable()) {  // the daemon is unavailable: nothing is known about the task
    LogWarning("job {}: {} {} waits: {}", id_, key.first, key.second, outcome.status.message());
    task->retry_start = true;
    task->start_at = now + options_.retry;
    return;
  }
  TaskEnd end;
  end.reason = outcome.status.message();
  task->phase = TaskPhase::kRefused;
  AddEvent(key, *task, std::move(end), events);
}

void DockerJob::ApplyInspectOutcome(const Outcome& outcome, Task* task, TimePoint now,
                                    std::vector<TaskEvent>* events) {
  if (!outcome.status.ok()) {
    LogWarning("job {}: {} {}: {}", id_, outcome.action.key.first, outcome.action.key.second,
               outcome.status.message());
    task->retry_at = now + options_.retry;
    return;
  }
  task->inspect_due = false;
  if (outcome.state && outcome.state->running) {
    if (task->kill_sent) task->retry_at = now + kInspectAfterKill;
    return;
  }
  task->alive = false;
  if (!outcome.state) task->container.clear();
  TaskEnd end = EndOf(outcome.state, task->desired);
  if (task->replaced)
    end.reason =
        "was killed and is started again: its container was paused (docker pause) "
        "for " +
        FormatDuration(options_.pause_patience);
  task->replace_at.reset();
  task->ApplyEnd({options_.restart, task->desired.restart_if_lost, stopping_}, now, &end,
                 [&] { return outcome.log_tail; });
  AddEvent(outcome.action.key, *task, std::move(end), events);
}

void DockerJob::OnContainerEnd(const TaskKey& key, int incarnation) {
  const auto it = tasks_.find(key);
  if (it != tasks_.end() && it->second.incarnation == incarnation) it->second.inspect_due = true;
}

void DockerJob::OnPauseChange(const TaskKey& key, int incarnation, bool paused, TimePoint now) {
  const auto it = tasks_.find(key);
  if (it != tasks_.end() && it->second.incarnation == incarnation)
    it->second.SetPaused(paused, now + options_.pause_patience);
}

void DockerJob::ReconcileRunning(const std::map<std::string, bool>& running, TimePoint now) {
  for (auto& [key, task] : tasks_) {
    if (!task.alive) continue;
    const auto found = running.find(task.container);
    if (found == running.end()) {
      task.inspect_due = true;
    } else {
      task.SetPaused(found->second, now + options_.pause_patience);
    }
  }
}

void DockerJob::AddEvent(const TaskKey& key, const Task& task, TaskEnd end,
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

bool DockerJob::HasEnded(const TaskKey& key) const {
  const auto it = tasks_.find(key);
  return it != tasks_.end() && it->second.phase != TaskPhase::kStarting &&
         it->second.phase != TaskPhase::kRunning;
}

std::string DockerJob::ContainerOf(const TaskKey& key) const {
  const auto it = tasks_.find(key);
  return it == tasks_.end() ? "" : it->second.container;
}

}  // namespace shoal::engine::docker
