#include "controller/supervisor/supervisor.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "controller/admission/dependency_gate.h"
#include "controller/admission/job_admitter.h"
#include "controller/recovery/leftovers.h"
#include "controller/run/job_run.h"
#include "controller/store/process_identity.h"
#include "controller/store/supervisor_mark.h"
#include "controller/supervisor/job_observers.h"
#include "controller/supervisor/requeue_delay.h"
#include "controller/supervisor/takeover_place.h"
#include "controller/threads/worker_pool.h"
#include "queue/core/job_spec.h"

namespace shoal::controller {
namespace {

// Commits of several jobs at once can share a sync; more threads would only wait.
constexpr size_t kStoreThreads = 4;
// Calls of one engine at once: enough for clusters with slow answers.
constexpr size_t kEngineThreads = 16;
// Interval at which jobs of other dead controllers are recovered while a job waits in the queue.
constexpr Duration kRecoverInterval = std::chrono::seconds(5);
// Time that an engine gets to remove what an earlier cleanup left behind.
constexpr std::chrono::milliseconds kLeftoverPatience{10'000};

// A job whose tasks have not joined waits again this often, and at most so much later.
constexpr int kGatherRetries = 5;
constexpr Duration kLongestRequeue = std::chrono::minutes(30);
// Records of jobs that were preempted, or have not gathered, and do not wait again yet.
constexpr const char* kPreempted = "preempted";

Status EndedAlready(const JobRecord& job) {
  return FailedPrecondition("job " + job.id + " has ended: " + std::string(job::NameOf(job.state)) +
                            (job.reason.empty() ? "" : ": " + job.reason));
}

// Runs belong to the loop's thread. Calls that block run in the pools: those of the store, the disk
// and all engines together in store_pool_, those of one engine in its own.
class LoopSupervisor final : public Supervisor {
 public:
  LoopSupervisor(SupervisorOptions options, LivenessLock lock)
      : options_(std::move(options)), lock_(std::move(lock)) {}
  // Blocks on the store.
  Status Begin() {
    TRY(queues_.Load(options_.queues));
    admitter_ = std::make_unique<JobAdmitter>(AdmitterOptions());
    gate_ =
        std::make_unique<DependencyGate>(DependencyGateOptions{.loop = &loop_,
                                                               .store = options_.store,
                                                               .clock = options_.clock,
                                                               .self = options_.self,
                                                               .store_threads = store_pool_.get()});
    queues_.Attach(admitter_.get());
    thread_ = std::thread([this] {
      Tick();
      loop_.Run();
    });
    return Status::Ok();
  }
  ~LoopSupervisor() override {
    loop_.Post([this] {
      runs_.clear();
      gate_.reset();
      queues_.Attach(nullptr);
      admitter_.reset();
      loop_.Stop();
    });
    if (thread_.joinable()) thread_.join();
    store_pool_.reset();  // before the engines' pools, which its calls use
  }

  Result<std::vector<std::string>> AttachAll() override;
  Status Attach(const std::string& id) override;
  Result<std::string> Submit(const job::Job& job, const SubmitOptions& options) override;
  void Drain(const std::string& id, const std::string& reason, Done done) override;
  void Kill(const std::string& id, const std::string& reason, Done done) override;
  void Suspend(const std::string& id, const std::string& reason, Done done) override;
  void Resume(const std::string& id, Done done) override;
  void Scale(const std::string& id, const std::string& role, int replicas,
             const std::string& reason, Done done) override;
  void Why(const std::string& id, std::function<void(const WhyWaits&)> done) override {
    loop_.Post([this, id, done = std::move(done)] {
      if (const auto why = gate_->Why(id)) return done(*why);
      admitter_->Why(id, done);
    });
  }
  void OnGroupEnd(const std::string& id) override {
    loop_.Post([this, id] { gate_->OnEnd(id); });
  }
  QueueManager& queues() override { return queues_; }
  std::unique_ptr<Observation> Observe(JobsObserver observer) override {
    return observers_.Add(std::move(observer));
  }
  std::vector<std::string> running() const override;

 private:
  Result<ControllerOptions> OptionsOf(const std::string& engine,
                                      const std::filesystem::path& work_dir);
  JobAdmitterOptions AdmitterOptions();
  Executor* PoolOf(const std::string& engine);
  bool IsOurs(const JobRecord& job) const;
  bool IsFree(const JobRecord& job) const;
  // Loads the job and starts its run on the loop's thread.
  Status StartRun(const std::string& id, const ControllerOptions& options);
  Observer ObserverOf(const std::string& id);
  void Preempt(const std::string& id, const std::string& reason);
  Status RequeuePreempted(const std::string& id);
  Status Unmark(const std::string& id);
  bool OnNotGathered(const std::string& id);
  void Requeue(const std::string& id);
  void EndRun(const std::string& id);
  // Calls `call` on the loop's thread with the job's run, or without one `otherwise` in the pool.
  void WithRun(const std::string& id, std::function<void(JobRun*)> call,
               std::function<void()> otherwise);
  // Executes `call` in the pool and delivers its result on the loop's thread.
  void CallStore(std::function<Status()> call, Done done);
  Status EndIdle(const std::string& id, const std::string& reason);
  Status ResumeNow(const std::string& id);
  void Stop(const std::string& id, const std::string& reason, Done done,
            void (JobRun::*how)(const std::string&));
  void Tick();
  Result<std::vector<std::string>> AttachFree();
  // `first`: nothing can resume a suspended job yet.
  void RecoverOthers(bool first);

  const SupervisorOptions options_;
  const LivenessLock lock_;
  JobObservers observers_;
  net::Loop loop_;
  // Of the loop's thread: runs, those of them that wait in the queue, and what follows their end.
  std::map<std::string, std::unique_ptr<JobRun>> runs_;
  std::set<std::string> waiting_;
  std::multimap<std::string, std::function<void()>> after_end_;
  std::map<std::string, int> gather_failures_;  // in a row
  std::map<std::string, Duration> requeued_;    // whose runs end, and how long they then pause
  std::set<std::string> preempted_;  // whose runs are to be suspended, and then wait again
  bool recovering_ = false;          // of the loop's thread
  std::atomic<size_t> left_{0};      // jobs that could not be taken over
  mutable Mutex mu_;
  std::set<std::string> ids_ GUARDED_BY(mu_);  // of runs that exist or are being started
  std::map<std::string, std::unique_ptr<WorkerPool>> engine_pools_ GUARDED_BY(mu_);
  std::unique_ptr<WorkerPool> store_pool_ = std::make_unique<WorkerPool>(kStoreThreads);
  QueueManager queues_{{&loop_, options_.store, options_.clock, store_pool_.get()}};
  std::unique_ptr<JobAdmitter> admitter_;  // of the loop's thread, as is the next
  std::unique_ptr<DependencyGate> gate_;
  std::thread thread_;
};

// ---- Runs ---------------------------------------------------------------------------------------

JobAdmitterOptions LoopSupervisor::AdmitterOptions() {
  JobAdmitterOptions options;
  options.loop = &loop_;
  options.store = options_.store;
  options.engines = options_.engines;
  options.clock = options_.clock;
  options.self = options_.self;
  options.store_threads = store_pool_.get();
  options.engine_threads = [this](const std::string& engine) { return PoolOf(engine); };
  options.policy = queues_.policy();
  options.modes = queues_.modes();
  options.preempt = [this](const std::string& id, const std::string& reason) {
    Preempt(id, reason);
  };
  options.resize = [this](const std::string& id, const std::string& role, int size, Done done) {
    const auto run = runs_.find(id);
    if (run != runs_.end()) run->second->Scale(role, size, kByTheQueue, std::move(done));
  };
  return options;
}

Executor* LoopSupervisor::PoolOf(const std::string& engine) {
  const MutexLock lock(mu_);
  std::unique_ptr<WorkerPool>& pool = engine_pools_[engine];
  if (pool == nullptr) pool = std::make_unique<WorkerPool>(kEngineThreads);
  return pool.get();
}

Result<ControllerOptions> LoopSupervisor::OptionsOf(const std::string& engine,
                                                    const std::filesystem::path& work_dir) {
  ControllerOptions options;
  TRY_ASSIGN(options.engine, options_.engines->Find(engine));
  options.engine_instance = engine;
  options.store = options_.store;
  options.clock = options_.clock;
  options.home = options_.home;
  options.program = options_.program;
  options.work_dir = work_dir;
  options.self = options_.self;
  options.connect = options_.connect;
  options.recovers_others = false;  // Tick does, for all
  options.executors = {PoolOf(engine), store_pool_.get()};
  options.secrets = options_.secrets;
  options.lead = options_.lead;
  options.admitter = admitter_.get();
  options.gate = gate_.get();
  options.not_gathered = [this](const std::string& id) { return OnNotGathered(id); };
  return options;
}

Observer LoopSupervisor::ObserverOf(const std::string& id) {
  Observer observer = observers_.ObserverOf(id);
  observer.on_state = [this, id, tell = observer.on_state](JobState state, const std::string& why) {
    if (state == JobState::kPending) {
      waiting_.insert(id);
    } else {
      waiting_.erase(id);
    }
    if (state == JobState::kRunning) gather_failures_.erase(id);
    tell(state, why);
  };
  observer.on_event = [this, id, tell = observer.on_event](const rendezvous::JobEvent& event) {
    tell(event);
    admitter_->OnEvent(id, event);
  };
  observer.on_end = [this, id, tell = observer.on_end](const JobRecord& record) {
    tell(record);
    if (job::IsFinal(record.state)) gather_failures_.erase(id);
    gate_->OnEnd(id);
    admitter_->Learn(record, admitter_->RanWhole(id));
    loop_.Post([this, id] { EndRun(id); });  // not here: the run executes this callback
  };
  return observer;
}

// Marks the job, so that a later supervisor resumes it too, and suspends it; EndRun lets it wait
// again.
void LoopSupervisor::Preempt(const std::string& id, const std::string& reason) {
  if (!preempted_.insert(id).second) {  // asked again
    const auto run = runs_.find(id);
    if (run != runs_.end()) run->second->Suspend(reason);
    return;
  }
  CallStore(
      [this, id, reason]() -> Status {
        return options_.store->records()
            .Put(kPreempted, id, {{"reason", reason}}, kAnyVersion, options_.clock->Wall())
            .status();
      },
      [this, id, reason](const Status& marked) {
        const auto run = runs_.find(id);
        if (run == runs_.end()) return;
        if (!marked.ok()) LogWarning("job {}: {}: {}", id, reason, marked.message());
        run->second->Suspend(reason);
      });
}

// Tasks that did not come together, for example because another gang holds half of the machines:
// the job gives everything back and waits again, later each time.
bool LoopSupervisor::OnNotGathered(const std::string& id) {
  const int failures = ++gather_failures_[id];
  if (failures > kGatherRetries) return false;
  const auto queues = queues_.policy();
  const Duration first = queues ? Duration(queues->requeue_first) : options_.requeue_delay;
  const Duration longest = queues ? Duration(queues->requeue_most) : kLongestRequeue;
  requeued_[id] = RequeueDelay(failures, first, longest);
  CallStore(
      [this, id] {
        return options_.store->records()
            .Put(kPreempted, id, {{"reason", "not gathered"}}, kAnyVersion, options_.clock->Wall())
            .status();
      },
      [id](const Status& marked) {
        if (!marked.ok()) LogWarning("job {}: {}", id, marked.message());
      });
  return true;
}

// A job that was preempted waits again, if it has been suspended and did not end.
Status LoopSupervisor::RequeuePreempted(const std::string& id) {
  const Result<JobRecord> job = options_.store->GetJob(id);
  const bool waits = job.ok() && job->state == JobState::kSuspended;
  if (waits) TRY(ResumeNow(id));
  return Unmark(id);
}

Status LoopSupervisor::Unmark(const std::string& id) {
  const Status unmarked =
      options_.store->records().Delete(kPreempted, id, kAnyVersion, options_.clock->Wall());
  return unmarked.code() == Code::kNotFound ? Status::Ok() : unmarked;
}

void LoopSupervisor::EndRun(const std::string& id) {
  runs_.erase(id);
  waiting_.erase(id);
  admitter_->Release(id);
  {
    const MutexLock lock(mu_);
    ids_.erase(id);
  }
  const auto [first, last] = after_end_.equal_range(id);
  std::vector<std::function<void()>> calls;
  for (auto it = first; it != last; ++it) calls.push_back(std::move(it->second));
  after_end_.erase(first, last);
  for (const auto& call : calls) call();
  if (preempted_.erase(id) > 0) return Requeue(id);
  const auto again = requeued_.extract(id);
  if (again.empty()) return;
  loop_.After(again.mapped(), [this, id] { Requeue(id); });
}

void LoopSupervisor::Requeue(const std::string& id) {
  CallStore([this, id] { return RequeuePreempted(id); },
            [id](const Status& done) {
              if (!done.ok()) LogWarning("job {}: not queued again: {}", id, done.message());
            });
}

Status LoopSupervisor::StartRun(const std::string& id, const ControllerOptions& options) {
  TRY_ASSIGN(StoredRun stored, LoadRun(options_.store, id));
  TRY(PrepareJobDir(options_.home, id, stored.record.labels));
  // It outlives this process, whatever a command asked for that submitted it.
  stored.job.on_controller_loss = job::OnControllerLoss::kKeep;
  {
    const MutexLock lock(mu_);
    ids_.insert(id);
  }
  loop_.Post([this, id, options, stored = std::make_shared<StoredRun>(std::move(stored))] {
    const bool waits = stored->record.state == JobState::kPending;
    const std::vector<Event>& events = waits ? stored->log : stored->events;
    admitter_->SetHistory(id, SizesOf(stored->job, queue::SpecOf(stored->job).role, events));
    if (!waits) admitter_->Hold(stored->record, WithSizes(stored->job, events), FlavorOf(events));
    runs_[id] = StartJobRun(options, &loop_, std::move(*stored), ObserverOf(id));
  });
  return Status::Ok();
}

std::vector<std::string> LoopSupervisor::running() const {
  const MutexLock lock(mu_);
  return {ids_.begin(), ids_.end()};
}

Result<std::string> LoopSupervisor::Submit(const job::Job& job, const SubmitOptions& options) {
  TRY(queues_.CheckQueue(job));
  job::Job whole = job;
  if (const Status found = ResolveDependencies(options_.store, options.team, &whole.triggers.after);
      !found.ok())
    return Status(found.code(), WithLocation(job, options.validation.locations, found.message()));
  options_.engines->SetDefaults(options.engine, &whole);
  whole.on_controller_loss = job::OnControllerLoss::kKeep;
  TRY_ASSIGN(ControllerOptions made, OptionsOf(options.engine, options.work_dir));
  made.validation = options.validation;
  TRY_ASSIGN(const JobLabels labels,
             LabelsWithUser(options.labels, options_.task_user, options.team, options.engine));
  TRY_ASSIGN(std::string id,
             Controller(made).Submit(whole, {options.team, options.user, labels, options.id}));
  TRY(StartRun(id, made));
  return id;
}

// ---- Jobs of dead controllers -------------------------------------------------------------------

// True if an earlier or this supervisor ran the job, or its file lets it outlive its controller.
bool LoopSupervisor::IsOurs(const JobRecord& job) const {
  if (options_.lead.epoch > 0 && job.lease_epoch > 0) return true;
  if (IsSupervisor(options_.home.root(), job.owner)) return true;
  return GetStringOr(job.job, "on_controller_loss", "") == "keep";
}

// True if no living process runs the job, or only one that does not lead any more.
bool LoopSupervisor::IsFree(const JobRecord& job) const {
  if (options_.lead.epoch > 0 && job.lease_epoch > 0 && job.lease_epoch < options_.lead.epoch)
    return true;
  if (job.owner != options_.self) return !IsAlive(options_.home.root(), job.owner);
  const MutexLock lock(mu_);
  return !ids_.contains(job.id);
}

Result<std::vector<std::string>> LoopSupervisor::AttachAll() {
  TRY_ASSIGN(const std::vector<std::string> attached, AttachFree());
  queues_.LearnPast();
  std::vector<std::string> to_requeue;
  RecoverOthers(true);
  TRY_ASSIGN(const RecordPage preempted, options_.store->records().List(kPreempted, "", "", 1000));
  for (const Record& record : preempted.records) {
    const MutexLock lock(mu_);
    if (!ids_.contains(record.key)) to_requeue.push_back(record.key);
  }
  for (const std::string& id : to_requeue) {
    if (const Status done = RequeuePreempted(id); !done.ok())
      LogWarning("job {}: not queued again: {}", id, done.message());
  }
  TRY(RemoveUnusedMarks(options_.home.root(), options_.self, options_.store));
  return attached;
}

Result<std::vector<std::string>> LoopSupervisor::AttachFree() {
  TRY_ASSIGN(std::vector<JobRecord> jobs,
             options_.store->ListJobs({.ended = false, .limit = INT_MAX}));
  // Those that hold resources first: what they hold counts when the others are decided.
  std::ranges::stable_partition(
      jobs, [](const JobRecord& job) { return job.state != JobState::kPending; });
  std::vector<std::string> attached;
  size_t left = 0;
  for (const JobRecord& job : jobs) {
    if (job.state == JobState::kSuspended || !IsFree(job) || !IsOurs(job)) continue;
    if (const Status status = Attach(job.id); status.ok()) {
      attached.push_back(job.id);
    } else {
      ++left;
      LogWarning("job {}: not taken over: {}", job.id, status.message());
    }
  }
  left_ = left;
  return attached;
}

Status LoopSupervisor::Attach(const std::string& id) {
  TRY_ASSIGN(const JobRecord job, options_.store->GetJob(id));
  if (job::IsFinal(job.state)) return EndedAlready(job);
  if (job.state == JobState::kSuspended)
    return FailedPrecondition("job " + id + " is suspended; resume it instead");
  if (!IsFree(job)) return FailedPrecondition("job " + id + " has a living controller");
  TRY_ASSIGN(const ControllerOptions options,
             OptionsOf(job.engine, ReadWorkDir(options_.home.job_dir(id))));
  TRY(CheckPlace(options_.home, job, options.engine));
  TRY_ASSIGN(const bool ours,
             options_.store->ClaimOwnership(id, job.owner, options_.self, options_.clock->Wall()));
  if (!ours) return FailedPrecondition("job " + id + " was taken over by another process");
  TRY(BreakLocks(options_.home, job, options_.self));
  return StartRun(id, options);
}

// Records the ends of other jobs, which end with their controllers, and removes what cleanups left.
void LoopSupervisor::RecoverOthers(bool first) {
  if (!options_.lead.held()) return;
  ReconcileOptions options;
  options.store = options_.store;
  options.home = options_.home;
  options.clock = options_.clock;
  options.self = options_.self;
  options.engine = [this](const std::string& name) { return options_.engines->Find(name); };
  if (const auto repaired = Reconcile(options); !repaired.ok())
    LogWarning("{}", repaired.status().message());
  for (const Leftover& gone : RemoveLeftovers(options, kLeftoverPatience, first))
    Log(LogLevel::kInfo, "{}: removed its remaining resources on {}", gone.job, gone.engine);
}

// Shows other processes that this one is not frozen, and frees resources that jobs wait for.
void LoopSupervisor::Tick() {
  store_pool_->Execute(
      [home = options_.home, self = options_.self] { RefreshLivenessLock(home.root(), self); });
  if ((!waiting_.empty() || left_ > 0) && !std::exchange(recovering_, true)) {
    CallStore(
        [this] {
          RecoverOthers(false);
          return left_ > 0 ? AttachFree().status() : Status::Ok();
        },
        [this](const Status&) { recovering_ = false; });
  }
  loop_.After(kRecoverInterval, [this] { Tick(); });
}

// ---- Commands -----------------------------------------------------------------------------------

void LoopSupervisor::CallStore(std::function<Status()> call, Done done) {
  store_pool_->Execute([this, call = std::move(call), done = std::move(done)] {
    loop_.Post([done, status = call()] { done(status); });
  });
}

void LoopSupervisor::WithRun(const std::string& id, std::function<void(JobRun*)> call,
                             std::function<void()> otherwise) {
  loop_.Post([this, id, call = std::move(call), otherwise = std::move(otherwise)] {
    const auto found = runs_.find(id);
    if (found == runs_.end()) return otherwise();
    call(found->second.get());
  });
}

// Ends a job that no run follows: only a suspended one.
Status LoopSupervisor::EndIdle(const std::string& id, const std::string& reason) {
  TRY_ASSIGN(const JobRecord job, options_.store->GetJob(id));
  if (job::IsFinal(job.state)) return EndedAlready(job);
  if (job.state != JobState::kSuspended)
    return FailedPrecondition("job " + id + " is run by another process");
  TRY_ASSIGN(const ControllerOptions options, OptionsOf(job.engine, {}));
  TRY(Controller(options).EndSuspended(id, reason));
  TRY_ASSIGN(const JobRecord ended, options_.store->GetJob(id));
  loop_.Post([this, tell = observers_.ObserverOf(id).on_end, ended] {
    tell(ended);
    gate_->OnEnd(ended.id);
  });
  return Status::Ok();
}

void LoopSupervisor::Stop(const std::string& id, const std::string& reason, Done done,
                          void (JobRun::*how)(const std::string&)) {
  WithRun(
      id,
      [reason, done, how](JobRun* run) {
        (run->*how)(reason);
        done(Status::Ok());
      },
      [this, id, reason, done] {
        CallStore([this, id, reason] { return EndIdle(id, reason); }, done);
      });
}

void LoopSupervisor::Drain(const std::string& id, const std::string& reason, Done done) {
  Stop(id, reason, std::move(done), &JobRun::Drain);
}

void LoopSupervisor::Kill(const std::string& id, const std::string& reason, Done done) {
  Stop(id, reason, std::move(done), &JobRun::Kill);
}

void LoopSupervisor::Suspend(const std::string& id, const std::string& reason, Done done) {
  WithRun(
      id,
      [this, id, reason, done](JobRun* run) {
        // It waits for a person now, also if it was to stop for another job before.
        if (preempted_.erase(id) > 0) CallStore([this, id] { return Unmark(id); }, [](auto&) {});
        run->Suspend(reason);
        done(Status::Ok());
      },
      [this, id, done] {
        CallStore(
            [this, id]() -> Status {
              TRY_ASSIGN(const JobRecord job, options_.store->GetJob(id));
              if (job::IsFinal(job.state)) return EndedAlready(job);
              if (job.state == JobState::kSuspended) return Status::Ok();
              return FailedPrecondition("job " + id + " is run by another process");
            },
            done);
      });
}

void LoopSupervisor::Scale(const std::string& id, const std::string& role, int replicas,
                           const std::string& reason, Done done) {
  WithRun(
      id,
      [this, id, role, replicas, reason, done](JobRun* run) {
        const Status fits = admitter_->CheckScale(id, role, replicas);
        if (!fits.ok()) return done(fits);
        run->Scale(role, replicas, reason, done);
      },
      [this, id, done] {
        CallStore(
            [this, id]() -> Status {
              TRY_ASSIGN(const JobRecord job, options_.store->GetJob(id));
              if (job::IsFinal(job.state)) return EndedAlready(job);
              if (job.state == JobState::kSuspended)
                return FailedPrecondition("job " + id + " is suspended; resume it first");
              return FailedPrecondition("job " + id + " is run by another process");
            },
            done);
      });
}

Status LoopSupervisor::ResumeNow(const std::string& id) {
  TRY_ASSIGN(const JobRecord job, options_.store->GetJob(id));
  TRY_ASSIGN(const ControllerOptions options,
             OptionsOf(job.engine, ReadWorkDir(options_.home.job_dir(id))));
  TRY(Controller(options).Resume(id));
  return StartRun(id, options);
}

void LoopSupervisor::Resume(const std::string& id, Done done) {
  loop_.Post([this, id, done = std::move(done)] {
    auto resume = [this, id, done] { CallStore([this, id] { return ResumeNow(id); }, done); };
    // A run that has just suspended the job is still cleaning up.
    if (!runs_.contains(id)) return resume();
    CallStore(
        [this, id]() -> Status {
          TRY_ASSIGN(const JobRecord job, options_.store->GetJob(id));
          if (job.state == JobState::kSuspended) return Status::Ok();
          return FailedPrecondition("job " + id + " is not suspended, but " +
                                    std::string(job::NameOf(job.state)));
        },
        [this, id, done, resume](const Status& suspended) {
          if (!suspended.ok()) return done(suspended);
          if (!runs_.contains(id)) return resume();
          after_end_.emplace(id, resume);
        });
  });
}

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::Start(SupervisorOptions options) {
  TRY(MarkSupervisor(options.home.root(), options.self));
  TRY_ASSIGN(LivenessLock lock, LivenessLock::Make(options.home.root(), options.self));
  auto supervisor = std::make_unique<LoopSupervisor>(std::move(options), std::move(lock));
  TRY(supervisor->Begin());
  return std::unique_ptr<Supervisor>(std::move(supervisor));
}

}  // namespace shoal::controller
