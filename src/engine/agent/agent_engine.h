// Base of the engines whose tasks are started by remote agents (slurm/, marathon/): a thread that
// reads the agents' event logs.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/agent/directory_watcher.h"
#include "engine/tasks/engine_base.h"

namespace shoal::engine {

// `Job` has ReadEvents, EndRemaining, RemoveRecords and dir. The derived class calls StartReader at
// the end of its constructor and StopReader at the beginning of its destructor.
template <typename Job, typename Entry>
class AgentEngine : public EngineBase<Entry> {
 protected:
  explicit AgentEngine(DirectoryWatcher changes) : changes_(std::move(changes)) {}

  virtual Job& JobOf(const Entry& entry) const = 0;
  // Called by the reader with mu_ held before it waits. True: call again within a second.
  virtual bool OnReaderWakeup() REQUIRES(this->mu_) { return false; }
  // Called by the reader with mu_ held after it has published these events.
  virtual void OnPublished(const std::vector<TaskEvent>& /*events*/) REQUIRES(this->mu_) {}

  std::string DirOf(const Entry& entry) const override { return JobOf(entry).dir(); }

  void StartReader() {
    reader_ = std::thread([this] { ReadEventLogs(); });
  }
  // Sets ending_, wakes all threads and joins the reader.
  void StopReader() {
    {
      const MutexLock lock(this->mu_);
      this->ending_ = true;
    }
    changes_.Wake();
    this->changed_.notify_all();
    reader_.join();
  }
  // Forgets a job that was stopped: publishes the ends of its tasks and removes its records.
  void FinishStopped(const std::string& job_id) {
    std::vector<TaskEvent> events;
    {
      const MutexLock lock(this->mu_);
      const auto it = this->jobs_.find(job_id);
      if (it == this->jobs_.end()) return;
      Job& job = JobOf(it->second);
      events = job.ReadEvents();
      const std::vector<TaskEvent> unreported = job.EndRemaining();
      events.insert(events.end(), unreported.begin(), unreported.end());
      job.RemoveRecords();
      this->jobs_.erase(it);
    }
    this->Publish(events);
  }

  const DirectoryWatcher changes_;
  int publishing_ GUARDED_BY(this->mu_) =
      0;  // threads that publish events which jobs_ already reflects

 private:
  void ReadEventLogs() {
    constexpr std::chrono::milliseconds kReadAgain{1000};
    for (;;) {
      std::vector<TaskEvent> events;
      std::optional<std::chrono::milliseconds> timeout;
      {
        const MutexLock lock(this->mu_);
        if (this->ending_) return;
        for (auto& [id, entry] : this->jobs_) {
          const std::vector<TaskEvent> read = JobOf(entry).ReadEvents();
          events.insert(events.end(), read.begin(), read.end());
        }
        const bool again = OnReaderWakeup();
        if (!this->jobs_.empty() || again) timeout = kReadAgain;
        ++publishing_;
      }
      this->Publish(events);
      {
        const MutexLock lock(this->mu_);
        --publishing_;
        OnPublished(events);
      }
      this->changed_.notify_all();
      changes_.Wait(timeout);
    }
  }

  std::thread reader_;
};

}  // namespace shoal::engine
