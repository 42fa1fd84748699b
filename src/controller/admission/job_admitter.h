// Admits the jobs of a supervisor: one decision maker over all of them, which holds the queue's
// state in memory and follows events, in place of one decision of each waiting job over the whole
// store.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/engines/engine_registry.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "controller/threads/executor.h"
#include "controller/threads/loop_task_group.h"
#include "job/spec/job.h"
#include "net/event_loop.h"
#include "queue/core/scheduler.h"
#include "queue/policy/policy.h"

namespace shoal::controller {

// Called on the loop's thread, not from within a call of the same job.
struct AdmissionCallbacks {
  std::function<void(JobRecord)> on_admitted = {};  // as stored afterwards; it may have been scaled
  // The job was suspended, ended or taken over by another process while it waited; its record, if
  // it can be read.
  std::function<void(std::optional<JobRecord>)> on_taken = {};
  // It must wait; called once for each reason, `first` for the first one. An error ends the wait.
  std::function<Status(const std::string& why, bool first)> on_wait = {};
  // The engine or the store cannot be asked, or the job can never be admitted.
  std::function<void(const Status&)> on_failed = {};
};

// Why a job waits for its admission. Plain value.
struct WhyWaits {
  bool waits = false;
  std::string reason;
  // Each alone would start the job now, as a trial showed: "in queue b", "with 3 tasks instead of
  // 4". Empty if no change of the job's file does.
  std::vector<std::string> changes;
};

// All pointers must outlive the admitter.
struct JobAdmitterOptions {
  net::Loop* loop = nullptr;
  Store* store = nullptr;
  EngineRegistry* engines = nullptr;
  const Clock* clock = RealClock::Get();
  ProcessIdentity self;  // owner of the jobs
  // Threads for calls of the store and of an engine.
  Executor* store_threads = nullptr;
  std::function<Executor*(const std::string& engine)> engine_threads;
  // Queues, quotas and shares (docs/queue.md). None: one queue, first in, first out on each engine,
  // limited by what the engine has.
  std::optional<queue::Policy> policy = {};
  // Carries out a preemption: the job is to save, to stop, and to wait again.
  std::function<void(const std::string& id, const std::string& reason)> preempt = {};
};

// The field of an admission's event with the flavor that the job got.
inline constexpr const char* kFlavorField = "flavor";

// Must be used on the loop's thread, and destroyed there or when the loop has ended.
//
// Every job of the supervisor is in it from its start to its end: Wait or Hold, then Release.
class JobAdmitter {
 public:
  explicit JobAdmitter(JobAdmitterOptions options);
  ~JobAdmitter();

  // A pending job. Ends with one call of on_admitted, on_taken or on_failed, or with Release.
  void Wait(const JobRecord& record, const job::Job& job, AdmissionCallbacks calls);
  // A job that was admitted by an earlier supervisor holds its resources. `flavor`: kFlavorField of
  // its admission; empty if it has none.
  void Hold(const JobRecord& record, const job::Job& job, const std::string& flavor);
  // The job was changed in the store while it waits: decides anew.
  void Reread(const std::string& id);
  // Why the job waits, and what would start it now. `done` is called once, on this or another
  // thread.
  void Why(const std::string& id, std::function<void(const WhyWaits&)> done);
  // The job has ended, was suspended, or does not wait any longer. Unknown ids are ignored.
  void Release(const std::string& id);

 private:
  struct Entry;
  // What is known of an engine.
  struct Machines {
    bool known = false;
    bool asking = false;
    TimePoint asked{};
  };

  using AppendDone = void (JobAdmitter::*)(Entry*, const Status&, const Result<JobRecord>&);

  queue::Millis Now() const;
  void Join(const JobRecord& record, const job::Job& job, Entry* entry);
  void Restore(Entry* entry, const std::string& flavor);
  void Preempt(const queue::Decision& decision);
  void AskMachines(const std::string& engine);
  void OnMachines(const std::string& engine, const Result<engine::Capacity>& capacity);
  void AddFlavor(const std::string& engine);
  bool Enter(Entry* entry);
  void Kick();
  void Decide();
  void Admit(Entry* entry);
  void Append(Entry* entry, const Event& event, AppendDone done);
  void OnAdmissionStored(Entry* entry, const Status& stored, const Result<JobRecord>& record);
  void OnReasonStored(Entry* entry, const Status& stored, const Result<JobRecord>& record);
  void TellReason(Entry* entry);
  void Tick();
  void Compare(const std::string& id, const Result<JobRecord>& record);
  void Fail(const std::string& id, const Status& status);
  Entry* Find(const std::string& id);
  std::vector<std::string> WaitingIds() const;

  const JobAdmitterOptions options_;
  LoopTaskGroup tasks_;
  queue::Policy policy_;  // that the scheduler has
  queue::Scheduler scheduler_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
  std::map<queue::JobRef, std::string> ids_;
  std::vector<std::string> untold_;  // ids of jobs that the next decision leaves waiting at first
  std::map<std::string, Machines> machines_;
  int64_t serial_ = 0;  // tells entries of one id apart
  bool kicked_ = false;
  net::Loop::Id tick_ = 0;  // 0: no job waits
  bool comparing_ = false;
};

}  // namespace shoal::controller
