// What the cluster says of a job's pods, turned into events of its tasks. No I/O: the engine's
// threads feed it.
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

// Not thread-safe.
class JobState {
 public:
  JobState(std::string id, RestartRules rules) : id_(std::move(id)), rules_(rules) {}

  // What Apply wants, before it is sent: new tasks are told as starting.
  void Want(const DesiredJob& desired, const JobChanges& changes, std::vector<TaskEvent>* events);
  // The Jobs that exist now.
  void SetJobs(std::vector<JobView> jobs);
  const std::vector<JobView>& jobs() const { return jobs_; }
  std::map<TaskKey, KnownTask> Known() const;

  // A pod as it is now. `words`: reads the last lines of its log.
  void See(const PodView& pod, TimePoint now, const TaskState::ReadLogTail& words,
           std::vector<TaskEvent>* events);
  // It is gone from the cluster.
  void SeeGone(const PodView& pod, TimePoint now, std::vector<TaskEvent>* events);
  // All pods that there are: what is not among them is gone.
  void SeeAll(const std::vector<PodView>& pods, TimePoint now, const TaskState::ReadLogTail& words,
              std::vector<TaskEvent>* events);
  // Why Jobs make no pods, by their names.
  void SeeFailedCreates(const std::map<std::string, std::string>& reasons,
                        std::vector<TaskEvent>* events);
  // The objects were removed by somebody else.
  void SeeRemoved(const std::string& reason, std::vector<TaskEvent>* events);
  // From the cluster alone, after a crash of ours: no events.
  void Adopt(const std::vector<PodView>& pods, TimePoint now);

  void Stopping() { stopping_ = true; }
  bool stopping() const { return stopping_; }
  // Whether a task that should start has no pod yet.
  bool AnyWithoutPod() const;
  bool AnyWanted() const;
  bool AnyAlive() const { return !alive_.empty(); }
  std::vector<TaskStatus> List() const;
  // The pod of the task's present incarnation.
  const PodView* PodOf(const std::string& role, int index) const;
  std::vector<PodView> AlivePods() const;

 private:
  struct Task {
    TaskState state;
    int order = 0;
    bool restart_if_lost = true;
    bool left = false;       // ended with job::kExitHostExcluded
    std::string uid;         // of the present incarnation's pod; empty: none was seen
    std::string told;        // why it waits, as it was told last
    bool told_pull = false;  // … what the registry has answered about its image
    PodView pod;
  };
  int IncarnationOf(const PodView& pod);
  const JobView* JobOf(const PodView& pod) const;
  void Begin(const TaskKey& key, Task* task, int incarnation, std::vector<TaskEvent>* events);
  void End(const TaskKey& key, Task* task, TaskEnd end, TimePoint now,
           const TaskState::ReadLogTail& words, std::vector<TaskEvent>* events);
  void Tell(const TaskKey& key, const Task& task, TaskEnd end,
            std::vector<TaskEvent>* events) const;
  void Wait(const TaskKey& key, Task* task, const std::string& why,
            std::vector<TaskEvent>* events) const;

  const std::string id_;
  const RestartRules rules_;
  std::vector<JobView> jobs_;
  std::map<TaskKey, Task> tasks_;
  std::map<std::string, int> incarnations_;  // by pod's uid
  std::map<TaskKey, int> next_;              // incarnation
  std::map<std::string, PodView> alive_;     // pods that exist and have not ended, by uid
  bool stopping_ = false;
};

// How a pod ended, for people too.
TaskEnd EndOfPod(const PodView& pod, const job::Resources& resources);

}  // namespace shoal::engine::kubernetes
