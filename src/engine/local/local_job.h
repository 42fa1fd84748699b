// One job on this machine: the states of its tasks and the actions that are due.
//
// Owned by LocalEngine and called under its lock; Step is called by the engine's thread after every
// wake-up. It blocks only to start processes (0.5 ms each) and to write the records.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/access/directory_owner.h"
#include "base/clock.h"
#include "base/file.h"
#include "engine/engine.h"
#include "engine/local/job_records.h"
#include "engine/local/local_engine.h"
#include "engine/process/spawn.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/task_state.h"

namespace shoal::engine {

// Made by Make or Find, changed by Apply and Stop, driven by Step. The first instance for a
// directory holds its lock and manages the job; another one only watches. Not thread-safe.
//
// If this process is root and the directory is another user's, tasks run as that user. The engine
// then trusts nothing that it reads there: only processes of that user are adopted and killed.
class LocalJob {
 public:
  // A new job; creates the engine's directory. `options` outlives it; pidfds are added to `epoll`.
  static Result<std::unique_ptr<LocalJob>> Make(const std::string& id, const std::string& dir,
                                                const LocalEngineOptions* options, int epoll);
  // A job from its records and its running processes; null if none runs.
  static Result<std::unique_ptr<LocalJob>> Find(const std::string& id, const std::string& dir,
                                                const LocalEngineOptions* options, int epoll);

  Status Apply(const DesiredJob& desired);
  // Sends SIGTERM to all tasks, and SIGKILL at `kill_at`. Starts no task any more.
  void Stop(TimePoint kill_at);
  // Reaps, starts, restarts and kills tasks that are due; limits the number of starts per call, so
  // that other jobs are served. Returns the time of the next action that no pidfd announces.
  std::optional<TimePoint> Step(TimePoint now, std::vector<TaskEvent>* events);

  std::vector<TaskStatus> List() const;
  bool AnyAlive() const;
  bool stopping() const { return stopping_; }
  // False if another engine manages the job.
  bool manages() const { return lock_.held(); }
  const std::string& dir() const { return dir_; }
  void SetGroupBases(const std::vector<std::filesystem::path>& bases);
  // Whether its records may be a user's invention, who must not direct a server that is root.
  bool foreign() const { return owner_.has_value(); }
  const std::vector<std::filesystem::path>& group_bases() const { return group_bases_; }
  void RemoveRecords();

 private:
  using Key = std::pair<std::string, int>;
  struct Task : TaskState {
    DesiredTask desired;
    pid_t pid = 0;
    uint64_t start_ticks = 0;
    UniqueFd pidfd;                    // valid while it runs, as far as known
    std::optional<TimePoint> end_due;  // it has ended, but its status is not available yet
    int end_reads = 0;
  };

  LocalJob(std::string id, std::string dir, const LocalEngineOptions* options, int epoll)
      : id_(std::move(id)),
        dir_(std::move(dir)),
        options_(options),
        epoll_(epoll),
        owner_(ForeignOwner(dir_)) {}
  // An error if another engine manages the job: then this one only watches it.
  Status Lock();
  void AdoptRunning(Task* task, TimePoint now);
  // Whether a process may be one of the job's.
  bool MayBeOurs(pid_t pid) const;
  Result<Spawned> SpawnTask(const Key& key, const Task& task) const;
  void Start(const Key& key, Task* task, TimePoint now, std::vector<TaskEvent>* events);
  void RequestStop(Task* task, TimePoint kill_at);
  // True if the task must be removed from the table.
  bool StepTask(const Key& key, Task* task, TimePoint now, std::vector<TaskEvent>* events);
  bool ApplyEnd(const Key& key, Task* task, TimePoint now, std::vector<TaskEvent>* events);
  std::string ReadLogTail(const Key& key) const;
  void AddEvent(const Key& key, const Task& task, TaskEnd end,
                std::vector<TaskEvent>* events) const;
  void Save();

  const std::string id_;
  const std::string dir_;
  const LocalEngineOptions* const options_;
  const int epoll_;
  const std::optional<UserIds> owner_;  // as whom tasks run; none: as this process
  JobLock lock_;
  bool stopping_ = false;
  int starts_left_ = 0;  // in this Step
  bool dirty_ = true;    // the records are out of date
  std::vector<std::filesystem::path> group_bases_;
  std::map<Key, Task> tasks_;
  std::vector<Key> order_;           // order of Apply: the coordinator first
  std::map<Key, int> incarnations_;  // next incarnation number of every task ever seen
};

}  // namespace shoal::engine
