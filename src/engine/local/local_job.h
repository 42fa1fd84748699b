// One job on this machine: its tasks' states and what has to be done about them next.
//
// Owned by LocalEngine and called under its lock; Step is called by the engine's thread after every
// wake-up. All blocking it does is starting processes (0.5 ms each) and writing the records.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "engine/engine.h"
#include "engine/local/job_records.h"
#include "engine/local/local_engine.h"
#include "engine/process/spawn.h"
#include "engine/tasks/task_state.h"

namespace shoal::engine {

class LocalJob {
 public:
  // Makes the engine's directory in the job's. `options` outlives this; `epoll` gets the pidfds.
  static Result<std::unique_ptr<LocalJob>> Make(const std::string& id, const std::string& dir,
                                                const LocalEngineOptions* options, int epoll);
  // From records and from what runs with the job's id; null if nothing runs.
  static Result<std::unique_ptr<LocalJob>> Find(const std::string& id, const std::string& dir,
                                                const LocalEngineOptions* options, int epoll);

  Status Apply(const DesiredJob& desired);
  // SIGTERM for all, SIGKILL for what still runs at `kill_at`. Nothing is started any more.
  void Stop(TimePoint kill_at);
  // Reaps, starts, restarts, kills what is due; of many starts some, so that others are served in
  // between. The time of the next thing to do, if there is one that no pidfd will tell.
  std::optional<TimePoint> Step(TimePoint now, std::vector<TaskEvent>* events);

  std::vector<TaskStatus> List() const;
  bool AnyAlive() const;
  bool stopping() const { return stopping_; }
  const std::string& dir() const { return dir_; }
  void SetGroupBases(const std::vector<std::filesystem::path>& bases);
  const std::vector<std::filesystem::path>& group_bases() const { return group_bases_; }
  void RemoveRecords();

 private:
  using Key = std::pair<std::string, int>;
  struct Task : TaskState {
    DesiredTask desired;
    pid_t pid = 0;
    uint64_t start_ticks = 0;
    UniqueFd pidfd;                    // valid while it runs, as far as we know
    std::optional<TimePoint> end_due;  // its end is known, how is not yet
    int end_reads = 0;
  };

  LocalJob(std::string id, std::string dir, const LocalEngineOptions* options, int epoll)
      : id_(std::move(id)), dir_(std::move(dir)), options_(options), epoll_(epoll) {}
  // An error if another engine looks after the job: then it is only watched here.
  Status Lock();
  void AdoptRunning(Task* task, TimePoint now);
  Result<Spawned> SpawnTask(const Key& key, const Task& task) const;
  void Start(const Key& key, Task* task, TimePoint now, std::vector<TaskEvent>* events);
  void Ask(Task* task, TimePoint kill_at);
  // True if the task is to be forgotten.
  bool StepTask(const Key& key, Task* task, TimePoint now, std::vector<TaskEvent>* events);
  bool TakeEnd(const Key& key, Task* task, TimePoint now, std::vector<TaskEvent>* events);
  std::string ReadLogTail(const Key& key) const;
  void Tell(const Key& key, const Task& task, TaskEnd end, std::vector<TaskEvent>* events) const;
  void Save();

  const std::string id_;
  const std::string dir_;
  const LocalEngineOptions* const options_;
  const int epoll_;
  UniqueFd lock_;
  bool stopping_ = false;
  int starts_left_ = 0;  // in this round
  bool dirty_ = true;    // the records are behind
  std::vector<std::filesystem::path> group_bases_;
  std::map<Key, Task> tasks_;
  std::vector<Key> order_;           // as Apply named them: the coordinator first
  std::map<Key, int> incarnations_;  // next one of each that ever was
};

}  // namespace shoal::engine
