// Converts the states of a job's pods into events of its tasks. Performs no I/O: PodInformer passes
// in pods and Jobs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/kubernetes/decode.h"
#include "engine/kubernetes/plan_jobs.h"
#include "engine/tasks/task_state.h"

namespace shoal::engine::kubernetes {

// Owned by PodInformer and called under its lock. Not thread-safe.
class JobState {
 public:
  JobState(std::string id, RestartRules rules) : id_(std::move(id)), rules_(rules) {}

  // Records the desired tasks of an Apply before its requests are sent; adds kStarting events for
  // new tasks.
  void SetDesired(const DesiredJob& desired, const JobChanges& changes,
                  std::vector<TaskEvent>* events);
  // Replaces the list of existing Jobs.
  void SetJobs(std::vector<JobView> jobs);
  const std::vector<JobView>& jobs() const { return jobs_; }
  std::map<TaskKey, KnownTask> KnownTasks() const;

  // Records the current state of a pod. `words` reads the last lines of its log.
  void UpdatePod(const PodView& pod, TimePoint now, const TaskState::ReadLogTail& words,
                 std::vector<TaskEvent>* events);
  // Records that a pod was removed from the cluster.
  void RemovePod(const PodView& pod, TimePoint now, std::vector<TaskEvent>* events);
  // Records the complete list of pods; known pods that are not in it were removed.
  void ReplacePods(const std::vector<PodView>& pods, TimePoint now,
                   const TaskState::ReadLogTail& words, std::vector<TaskEvent>* events);
  // Records why Jobs cannot create pods, by the Jobs' names.
  void SetCreateErrors(const std::map<std::string, std::string>& reasons,
                       std::vector<TaskEvent>* events);
  // Records that another party removed the job's objects.
  void MarkRemoved(const std::string& reason, std::vector<TaskEvent>* events);
  // Restores the state from the cluster's pods after a restart of the controller; adds no events.
  void Adopt(const std::vector<PodView>& pods, TimePoint now);

  void Stopping() { stopping_ = true; }
  bool stopping() const { return stopping_; }
  // Whether a task that must start has no pod yet.
  bool AnyWithoutPod() const;
  bool AnyWanted() const;
  bool AnyAlive() const { return !alive_.empty(); }
  std::vector<TaskStatus> List() const;
  // The pod of the task's current incarnation.
  const PodView* PodOf(const std::string& role, int index) const;
  std::vector<PodView> AlivePods() const;

 private:
  struct Task {
    TaskState state;
    int order = 0;
    bool restart_if_lost = true;
    bool left = false;       // ended with job::kExitHostExcluded
    std::string uid;         // uid of the current incarnation's pod; empty: none was seen
    std::string told;        // the last reported reason of waiting
    bool told_pull = false;  // the registry's response was reported
    PodView pod;
  };
  int IncarnationOf(const PodView& pod);
  const JobView* JobOf(const PodView& pod) const;
  void Begin(const TaskKey& key, Task* task, int incarnation, std::vector<TaskEvent>* events);
  void End(const TaskKey& key, Task* task, TaskEnd end, TimePoint now,
           const TaskState::ReadLogTail& words, std::vector<TaskEvent>* events);
  void AddEvent(const TaskKey& key, const Task& task, TaskEnd end,
                std::vector<TaskEvent>* events) const;
  void Wait(const TaskKey& key, Task* task, const std::string& why,
            std::vector<TaskEvent>* events) const;

  const std::string id_;
  const RestartRules rules_;
  std::vector<JobView> jobs_;
  std::map<TaskKey, Task> tasks_;
  std::map<std::string, int> incarnations_;  // by pod's uid
  std::map<TaskKey, int> next_;              // next incarnation number
  std::map<std::string, PodView> alive_;     // pods that exist and have not ended, by uid
  bool stopping_ = false;
};

// The end of a pod, with a reason for the user.
TaskEnd EndOfPod(const PodView& pod, const job::Resources& resources);

}  // namespace shoal::engine::kubernetes
