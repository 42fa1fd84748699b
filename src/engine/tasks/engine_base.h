// Base of the engines that keep a table of the jobs they run: the table, its lock, and the methods
// of Engine that need no more than a job's directory.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/access/directory_owner.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/tasks/coordinator_location.h"
#include "engine/tasks/event_hub.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

// `Entry` is what an engine keeps of a job. Thread-safe; mu_ guards all members, and must not be
// held during a call of Publish.
template <typename Entry>
class EngineBase : public PublishingEngine {
 public:
  // The address in the job's directory, for engines whose coordinators write to it.
  Result<Endpoint> Dial(const std::string& job_id) override {
    TRY_ASSIGN(const std::string dir, JobDir(job_id));
    TRY_ASSIGN(const CoordinatorLocation location, ReadCoordinatorLocation(job_id, dir));
    return location.endpoint;
  }
  // The log in the job's directory, for engines whose tasks write to it.
  Result<std::string> TaskLog(const std::string& job_id, const std::string& role, int index,
                              size_t limit) override {
    TRY(CheckName("role", role));
    TRY_ASSIGN(const std::string dir, JobDir(job_id));
    const FileAccessAs owner(dir);
    return ReadTail(TaskLogPath(dir, role, index), limit);
  }

 protected:
  // The directory of the entry's job.
  virtual std::string DirOf(const Entry& entry) const = 0;
  // Takes mu_ for a call from outside; `const MutexLock lock(mu_, std::adopt_lock)` follows.
  virtual void LockForCall() ACQUIRE(mu_) { mu_.lock(); }

  // NotFound if this engine does not run the job. The caller holds mu_, and the result is valid as
  // long as it does.
  Result<Entry*> FindJob(const std::string& job_id) REQUIRES(mu_) {
    const auto found = jobs_.find(job_id);
    if (found == jobs_.end()) return NotFound("no job " + job_id + " is run by this engine");
    return &found->second;
  }
  Result<std::string> JobDir(const std::string& job_id) {
    LockForCall();
    const MutexLock lock(mu_, std::adopt_lock);
    TRY_ASSIGN(Entry* const entry, FindJob(job_id));
    return DirOf(*entry);
  }

  Mutex mu_;
  CondVar changed_;  // the state of a job changed, or the engine ends
  std::map<std::string, Entry> jobs_ GUARDED_BY(mu_);  // by job id
  bool ending_ GUARDED_BY(mu_) = false;                // the destructor runs
};

}  // namespace shoal::engine
