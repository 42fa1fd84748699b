#include "engine/kubernetes/job_state.h"

#include <algorithm>

#include "job/execution/plan.h"

namespace shoal::engine::kubernetes {
namespace {

bool IsDead(TaskPhase phase) {
  return phase == TaskPhase::kEnded || phase == TaskPhase::kLost || phase == TaskPhase::kRefused;
}

}  // namespace

TaskEnd EndOfPod(const PodView& pod, const job::Resources& resources) {
  TaskEnd end;
  constexpr int kSignalBase = 128;
  constexpr int kLastSignal = 64;
  if (pod.exit_code > kSignalBase && pod.exit_code <= kSignalBase + kLastSignal) {
    end.signal = pod.exit_code - kSignalBase;
  } else {
    end.exit_code = pod.exit_code;
  }
  if (pod.exit_code < 0) end.signal = 9;  // no exit code was recorded: it was killed with its node
  end.reason = pod.end_reason;
  if (pod.out_of_memory) {
    end.out_of_memory = true;
    end.signal = 9;
    end.reason = "used more memory than its limit" +
                 (resources.memory_bytes > 0 ? " of " + job::FormatBytes(resources.memory_bytes)
                                             : std::string(" or its node has")) +
                 "; give its role more with resources.memory";
  }
  return end;
}

// ---- What is wanted ----

void JobState::SetJobs(std::vector<JobView> jobs) { jobs_ = std::move(jobs); }

std::map<TaskKey, KnownTask> JobState::KnownTasks() const {
  std::map<TaskKey, KnownTask> known;
  for (const auto& [key, next] : next_) known[key].next = next;
  for (const auto& [key, task] : tasks_) {
    known[key].over = IsDead(task.state.phase) && task.state.phase != TaskPhase::kLost;
    known[key].left = task.left && task.state.phase == TaskPhase::kLost;
  }
  return known;
}

void JobState::SetDesired(const DesiredJob& desired, const JobChanges& changes,
                          std::vector<TaskEvent>* events) {
  std::set<TaskKey> made;
  for (const RoleJob& job : changes.make) {
    for (int i = 0; i < job.count; ++i) made.insert({job.role, job.single >= 0 ? job.single : i});
  }
  int order = 0;
  const auto want = [&](const DesiredTask& wish, const TaskKey& key, Task* task, bool fresh) {
    const bool back = !fresh && !task->state.listed;
    task->order = order++;
    task->restart_if_lost = wish.restart_if_lost;
    task->state.listed = true;
    if (!fresh && !((back || made.contains(key)) && IsDead(task->state.phase))) return;
    task->state.history = RestartHistory();
    task->state.stop_requested = false;
    task->uid.clear();
    Begin(key, task, next_[key], events);
  };
  MatchTasks(desired.tasks, &tasks_, want, [](Task* task) {
    task->state.listed = false;
    task->state.stop_requested = true;
  });
}

void JobState::Begin(const TaskKey& key, Task* task, int incarnation,
                     std::vector<TaskEvent>* events) {
  task->state.incarnation = incarnation;
  task->state.phase = TaskPhase::kStarting;
  task->told.clear();
  task->left = false;
  next_[key] = std::max(next_[key], incarnation + 1);
  AddEvent(key, *task, {}, events);
}

// ---- What is seen ----

const JobView* JobState::JobOf(const PodView& pod) const {
  for (const JobView& job : jobs_) {
    if (job.name == pod.job_name) return &job;
  }
  return nullptr;
}

int JobState::IncarnationOf(const PodView& pod) {
  const auto [it, fresh] = incarnations_.try_emplace(pod.uid, 0);
  if (fresh) {
    const JobView* job = JobOf(pod);
    it->second = pod.failures + (job == nullptr ? 0 : job->BaseOf(pod.index));
  }
  return it->second;
}

void JobState::UpdatePod(const PodView& pod, TimePoint now, const TaskState::ReadLogTail& words,
                         std::vector<TaskEvent>* events) {
  const bool known = incarnations_.contains(pod.uid);
  const int incarnation = IncarnationOf(pod);
  if (pod.ended) {
    alive_.erase(pod.uid);
  } else {
    alive_[pod.uid] = pod;
  }
  const TaskKey key{pod.role, pod.index};
  const auto it = tasks_.find(key);
  if (it == tasks_.end()) return;
  Task& task = it->second;
  if (task.uid != pod.uid) {
    if (known || incarnation < task.state.incarnation)
      return;  // a late update of an earlier incarnation
    if (!task.uid.empty() && !IsDead(task.state.phase)) {
      // The cluster gave the pod up because its node is unreachable.
      TaskEnd end = EndOfPod(task.pod, {});
      if (end.reason.empty()) end.reason = "was replaced by the cluster";
      End(key, &task, std::move(end), now, words, events);
    }
    if (incarnation > task.state.incarnation || task.state.phase == TaskPhase::kLost)
      Begin(key, &task, std::max(incarnation, task.state.incarnation), events);
    if (IsDead(task.state.phase)) return;
    task.uid = pod.uid;
  }
  task.pod = pod;
  if (IsDead(task.state.phase)) return;
  // A node alternates between the registry's response and the back-off.
  task.told_pull = pod.pull_failed || (pod.backs_off && task.told_pull);
  const bool less = pod.backs_off && task.told_pull;
  if (!pod.waits.empty() && !less) Wait(key, &task, pod.waits, events);
  if (pod.started && task.state.phase == TaskPhase::kStarting) {
    task.state.phase = TaskPhase::kRunning;
    task.state.started = now;
    AddEvent(key, task, {}, events);
  }
  if (pod.ended && pod.lived) task.state.started = now - std::chrono::seconds(*pod.lived);
  if (pod.ended) End(key, &task, EndOfPod(pod, {}), now, words, events);
}

void JobState::End(const TaskKey& key, Task* task, TaskEnd end, TimePoint now,
                   const TaskState::ReadLogTail& words, std::vector<TaskEvent>* events) {
  task->left = end.exit_code == job::kExitHostExcluded;
  if (task->pod.cannot_start && task->pod.ended && !task->state.stop_requested && !stopping_) {
    task->state.phase = TaskPhase::kRefused;
  } else {
    task->state.ApplyEnd({rules_, task->restart_if_lost, stopping_}, now, &end, words);
    task->state.start_at.reset();  // the cluster starts it
  }
  AddEvent(key, *task, std::move(end), events);
}

void JobState::RemovePod(const PodView& pod, TimePoint now, std::vector<TaskEvent>* events) {
  (void)IncarnationOf(pod);
  alive_.erase(pod.uid);
  const auto it = tasks_.find({pod.role, pod.index});
  if (it == tasks_.end() || it->second.uid != pod.uid || IsDead(it->second.state.phase)) return;
  TaskEnd end = EndOfPod(pod, {});
  if (end.reason.empty() && !pod.ended) end.reason = "had its pod deleted";
  End(
      it->first, &it->second, std::move(end), now, [] { return std::string(); }, events);
}

void JobState::ReplacePods(const std::vector<PodView>& pods, TimePoint now,
                           const TaskState::ReadLogTail& words, std::vector<TaskEvent>* events) {
  std::set<std::string> there;
  for (const PodView& pod : pods) {
    there.insert(pod.uid);
    UpdatePod(pod, now, words, events);
  }
  std::vector<PodView> gone;
  for (const auto& [uid, pod] : alive_) {
    if (!there.contains(uid)) gone.push_back(pod);
  }
  for (const PodView& pod : gone) RemovePod(pod, now, events);
}

void JobState::Wait(const TaskKey& key, Task* task, const std::string& why,
                    std::vector<TaskEvent>* events) const {
  if (task->told == why || task->state.phase != TaskPhase::kStarting) return;
  task->told = why;
  TaskEnd reason;
  reason.reason = why;
  AddEvent(key, *task, std::move(reason), events);
}

void JobState::SetCreateErrors(const std::map<std::string, std::string>& reasons,
                               std::vector<TaskEvent>* events) {
  for (auto& [key, task] : tasks_) {
    if (!task.uid.empty() || !task.state.listed) continue;
    for (const JobView& job : jobs_) {
      const auto found = reasons.find(job.name);
      if (found != reasons.end() && job.role == key.first && job.Has(key.second))
        Wait(key, &task, found->second, events);
    }
  }
}

void JobState::MarkRemoved(const std::string& reason, std::vector<TaskEvent>* events) {
  alive_.clear();
  for (auto& [key, task] : tasks_) {
    // Deleting a namespace ends its pods first, and these may have ended with 0.
    const bool over = IsDead(task.state.phase) && task.state.phase != TaskPhase::kLost;
    if (over && (!IsCoordinator(key.first) || task.state.phase == TaskPhase::kRefused)) continue;
    task.state.phase =
        task.state.stop_requested || stopping_ ? TaskPhase::kEnded : TaskPhase::kRefused;
    TaskEnd end;
    end.signal = 9;
    end.reason = reason;
    AddEvent(key, task, std::move(end), events);
  }
}

void JobState::Adopt(const std::vector<PodView>& pods, TimePoint now) {
  std::vector<TaskEvent> untold;
  for (const JobView& job : jobs_) {
    const int count = job.single >= 0 ? 1 : job.completions;
    for (int i = 0; i < count; ++i) {
      const int index = job.single >= 0 ? job.single : i;
      const TaskKey key{job.role, index};
      Task& task = tasks_[key];
      const int base = job.BaseOf(index);
      if (base < task.state.incarnation) continue;
      task.order = job.order;
      task.restart_if_lost = job.restarts;
      Begin(key, &task, base, &untold);
    }
  }
  ReplacePods(
      pods, now, [] { return std::string(); }, &untold);
}

void JobState::AddEvent(const TaskKey& key, const Task& task, TaskEnd end,
                        std::vector<TaskEvent>* events) const {
  events->push_back(
      {id_, key.first, key.second, task.state.incarnation, task.state.phase, std::move(end)});
}

// ---- Questions ----

bool JobState::AnyWithoutPod() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](const auto& entry) {
    return entry.second.uid.empty() && entry.second.state.listed &&
           entry.second.state.phase == TaskPhase::kStarting;
  });
}

bool JobState::AnyWanted() const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [](const auto& entry) { return entry.second.state.listed; });
}

std::vector<TaskStatus> JobState::List() const {
  std::vector<std::pair<int, TaskStatus>> ordered;
  for (const auto& [key, task] : tasks_) {
    ordered.push_back(
        {task.order, {key.first, key.second, task.state.incarnation, task.state.phase, 0}});
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TaskStatus> list;
  for (auto& [order, status] : ordered) list.push_back(std::move(status));
  return list;
}

const PodView* JobState::PodOf(const std::string& role, int index) const {
  const auto found = tasks_.find({role, index});
  return found == tasks_.end() || found->second.uid.empty() ? nullptr : &found->second.pod;
}

std::vector<PodView> JobState::AlivePods() const {
  std::vector<PodView> pods;
  for (const auto& [uid, pod] : alive_) pods.push_back(pod);
  return pods;
}

}  // namespace shoal::engine::kubernetes
