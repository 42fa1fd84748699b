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
#include "controller/admission/job_sizes.h"
#include "controller/admission/queue_modes.h"
#include "controller/admission/why_waits.h"
#include "controller/engines/engine_registry.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "controller/threads/executor.h"
#include "controller/threads/loop_task_group.h"
#include "job/spec/job.h"
#include "net/event_loop.h"
#include "queue/core/run_times.h"
#include "queue/core/scheduler.h"
#include "queue/policy/policy.h"
#include "queue/why/forecast.h"

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
  QueueModes modes = {};
  // Carries out a preemption: the job is to save, to stop, and to wait again. Called again for a
  // job that does not stop.
  std::function<void(const std::string& id, const std::string& reason)> preempt = {};
  // Asks a job's coordinator for another number of tasks. `done` is called at most once, on the
  // loop's thread, with its answer.
  std::function<void(const std::string& id, const std::string& role, int size,
                     std::function<void(const Status&)> done)>
      resize = {};
};

struct AdmitterEntry;
class HeldJobs;

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
  // its admission; empty if it has none. `job` has the numbers of tasks that it has now.
  void Hold(const JobRecord& record, const job::Job& job, const std::string& flavor);
  // What the log says of an elastic job; before Wait or Hold.
  void SetHistory(const std::string& id, const SizeHistory& history) { histories_[id] = history; }
  // Every event of a job's coordinator: its size, and whether it refuses to stop.
  void OnEvent(const std::string& id, const rendezvous::JobEvent& event);
  // Whether a person may give a running job so many tasks: FailedPrecondition says how many its
  // queue has room for.
  Status CheckScale(const std::string& id, const std::string& role, int size) const;
  // The job was changed in the store while it waits: decides anew.
  void Reread(const std::string& id);
  // Why the job waits, and what would start it now. `done` is called once, on this or another
  // thread.
  void Why(const std::string& id, std::function<void(const WhyWaits&)> done);
  // Another policy, and the modes that operators have set. Jobs keep their places.
  // FailedPrecondition, naming the jobs, if some would be stranded; nothing changes then.
  Status SetPolicy(const std::optional<queue::Policy>& policy, const QueueModes& modes);
  const queue::Scheduler& scheduler() const { return scheduler_; }
  // What would become of a job now, if it were submitted. `done` is called once, on this or another
  // thread.
  void Try(const JobRecord& record, const job::Job& job,
           std::function<void(const Result<queue::SubmissionTrial>&)> done);
  // A job has ended. If it succeeded in one run, the next one of the same user and name that
  // declares no deadline is expected to run as long. `whole`: it was not suspended in between.
  void Learn(const JobRecord& ended, bool whole);
  // Jobs that came before what was learnt get their expected run times.
  void ExpectAll();
  // Whether the job has run since its admission without a pause.
  bool RanWhole(const std::string& id) const;
  // The job has ended, was suspended, or does not wait any longer. Unknown ids are ignored.
  void Release(const std::string& id);

 private:
  using Entry = AdmitterEntry;
  // What is known of an engine.
  struct Machines {
    bool known = false;
    bool asking = false;
    TimePoint asked{};
    engine::Capacity capacity{};
    std::vector<std::function<void(const Status&)>> then = {};  // once it is known, or cannot be
  };

  using AppendDone = void (JobAdmitter::*)(Entry*, const Status&, const Result<JobRecord>&);

  queue::Millis Now() const;
  void Join(const JobRecord& record, const job::Job& job, Entry* entry);
  void Restore(Entry* entry, const std::string& flavor);
  void Preempt(const queue::Decision& decision);
  Entry* Of(queue::JobRef job) const;
  std::string ReasonText(const Entry& entry, const queue::Reason& reason) const;
  void AskMachines(const std::string& engine);
  void OnMachines(const std::string& engine, const Result<engine::Capacity>& capacity);
  void AddFlavor(const std::string& engine);
  void SetMachines(const std::string& engine, const engine::Capacity& capacity);
  bool Enter(Entry* entry);
  queue::JobSpec SpecOf(const JobRecord& record, const job::Job& job) const;
  void Kick();
  void Decide();
  void Admit(Entry* entry);
  void Append(Entry* entry, std::vector<Event> events, AppendDone done);
  void OnAdmissionStored(Entry* entry, const Status& stored, const Result<JobRecord>& record);
  void OnReasonStored(Entry* entry, const Status& stored, const Result<JobRecord>& record);
  void TellReason(Entry* entry);
  void Tick();
  void Compare(const std::string& id, const Result<JobRecord>& record);
  void Fail(const std::string& id, const Status& status);
  Entry* Find(const std::string& id) const;
  std::vector<std::string> WaitingIds() const;

  const JobAdmitterOptions options_;
  LoopTaskGroup tasks_;
  bool managed_ = false;  // by a policy, not one queue for each engine
  QueueModes modes_;
  queue::Policy policy_;  // that the scheduler has
  queue::Scheduler scheduler_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
  std::unique_ptr<HeldJobs> held_;
  std::map<queue::JobRef, std::string> ids_;
  std::vector<std::string> untold_;  // ids of jobs that the next decision leaves waiting at first
  std::map<std::string, Machines> machines_;
  queue::RunTimes run_times_;
  std::map<std::string, SizeHistory> histories_;  // of jobs that are not in entries_ yet
  int64_t serial_ = 0;                            // tells entries of one id apart
  bool kicked_ = false;
  net::Loop::Id tick_ = 0;  // 0: no job waits
  bool comparing_ = false;
};

}  // namespace shoal::controller
