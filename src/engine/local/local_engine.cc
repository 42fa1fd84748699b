// The local engine: the methods of Engine change the table of jobs under mu_ and wake the single
// thread, which starts, reaps and restarts tasks (local_job.h) and publishes events.
#include "engine/local/local_engine.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/mutex.h"
#include "engine/exec/local_exec.h"
#include "engine/local/isolated_dirs.h"
#include "engine/local/job_remains.h"
#include "engine/local/local_job.h"
#include "engine/process/task_process.h"
#include "engine/tasks/coordinator_location.h"
#include "engine/tasks/engine_base.h"
#include "engine/tasks/job_files.h"
#include "host/cgroup/cgroup.h"
#include "host/gpu/nvml.h"
#include "host/network/port_lease.h"
#include "host/process/process_usage.h"

namespace shoal::engine {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Time that tasks get to end after SIGKILL before Stop reports that they hang.
constexpr milliseconds kKillPatience{10'000};

// All blocking work (starting and signalling processes) happens in LocalJob under mu_; the thread
// limits it per iteration. Events are published without mu_.
class LocalEngine final : public EngineBase<std::unique_ptr<LocalJob>>, public Executes {
 public:
  LocalEngine(LocalEngineOptions options, UniqueFd epoll, UniqueFd wake)
      : options_(std::move(options)), epoll_(std::move(epoll)), wake_(std::move(wake)) {
    if (options_.environment.empty()) options_.environment = CleanEnvironment();
    thread_ = std::thread([this] { Run(); });
  }
  ~LocalEngine() override {
    {
      const MutexLock lock(mu_);
      ending_ = true;
    }
    Wake();
    thread_.join();
  }

  std::string name() const override {
    return options_.no_shared_filesystem ? "local-apart" : "local";
  }
  bool SharesJobDirectory() const override { return !options_.no_shared_filesystem; }
  bool UsesPids() const override { return true; }
  Result<Capacity> GetCapacity() override;
  Status Apply(const DesiredJob& desired) override;
  Status Stop(const std::string& job_id, milliseconds grace) override;
  Result<std::vector<TaskStatus>> Adopt(const std::string& job_id,
                                        const std::string& job_dir) override;
  Result<Endpoint> Dial(const std::string& job_id) override;
  Executes* executes() override { return this; }
  Result<std::unique_ptr<Execution>> Exec(const std::string& job_id, const std::string& role,
                                          int index, const ExecSpec& spec) override {
    return ExecLocally(job_id, role, index, spec, GroupBases());
  }
  Result<UniqueFd> DialTask(const std::string& job_id, const std::string& role, int index,
                            uint16_t port) override {
    return DialLocally(job_id, role, index, port);
  }

 private:
  void Wake() {
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }
  void Run();
  // Locks mu_ fairly: a waiting caller gets it before the thread's next iteration.
  void LockForCall() override ACQUIRE(mu_) {
    const MutexLock turn(turn_mu_);
    mu_.lock();
  }
  // Executes all due actions under the lock. Returns the time until the next one.
  int Step(std::vector<TaskEvent>* events) REQUIRES(mu_);
  void WaitFor(int timeout_ms);
  std::string DirOf(const std::unique_ptr<LocalJob>& entry) const override { return entry->dir(); }
  std::vector<fs::path> GroupBases();

  LocalEngineOptions options_;
  const UniqueFd epoll_;
  const UniqueFd wake_;

  Mutex turn_mu_;
  std::vector<fs::path> group_bases_ GUARDED_BY(mu_);
  bool group_bases_known_ GUARDED_BY(mu_) = false;
  bool publishing_ GUARDED_BY(mu_) = false;  // events that jobs_ reflects are not delivered yet
  std::thread thread_;                       // last: uses all of the above
};

// ---- the thread ----

void LocalEngine::Run() {
  for (;;) {
    std::vector<TaskEvent> events;
    int timeout_ms = -1;
    {
      LockForCall();
      const MutexLock lock(mu_, std::adopt_lock);
      if (ending_) return;
      timeout_ms = Step(&events);
      publishing_ = true;
    }
    Publish(events);
    {
      const MutexLock lock(mu_);
      publishing_ = false;
    }
    changed_.notify_all();
    WaitFor(timeout_ms);
  }
}

int LocalEngine::Step(std::vector<TaskEvent>* events) {
  const TimePoint now = options_.clock->Now();
  std::optional<TimePoint> next;
  for (auto& [id, job] : jobs_) {
    const std::optional<TimePoint> due = job->Step(now, events);
    if (due && (!next || *due < *next)) next = due;
  }
  if (!next) return -1;
  // Rounded up: waking a moment too early would cause an empty iteration.
  const auto wait = std::chrono::ceil<milliseconds>(*next - now);
  return static_cast<int>(std::clamp<int64_t>(wait.count(), 0, 60'000));
}

void LocalEngine::WaitFor(int timeout_ms) {
  constexpr int kMaxEvents = 64;
  epoll_event ready[kMaxEvents];
  (void)::epoll_wait(epoll_.get(), ready, kMaxEvents, timeout_ms);
  uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
}

// ---- engine.h ----

Result<Capacity> LocalEngine::GetCapacity() {
  TRY(host::CheckLoopback());
  const host::MachineFacts facts = host::ReadMachineFacts();
  return Capacity{facts.cores, facts.memory_bytes, host::CountGpus()};
}

std::vector<fs::path> LocalEngine::GroupBases() {
  LockForCall();
  const MutexLock lock(mu_, std::adopt_lock);
  if (!group_bases_known_) group_bases_ = host::FindCgroups().Bases();
  group_bases_known_ = true;
  return group_bases_;
}

Status LocalEngine::Apply(const DesiredJob& desired) {
  TRY(CheckDesiredJob(desired));
  const std::vector<fs::path> bases = GroupBases();
  {
    LockForCall();
    const MutexLock lock(mu_, std::adopt_lock);
    std::unique_ptr<LocalJob>& job = jobs_[desired.job_id];
    if (job == nullptr) {
      auto made = LocalJob::Make(desired.job_id, desired.job_dir, &options_, epoll_.get());
      if (!made.ok()) {
        jobs_.erase(desired.job_id);
        return made.status();
      }
      job = std::move(*made);
      job->SetGroupBases(bases);
    }
    if (job->stopping()) return FailedPrecondition("job " + desired.job_id + " is being stopped");
    TRY(job->Apply(desired));
  }
  Wake();
  return Status::Ok();
}

Result<std::vector<TaskStatus>> LocalEngine::Adopt(const std::string& job_id,
                                                   const std::string& job_dir) {
  TRY(CheckName("job id", job_id));
  std::vector<TaskStatus> tasks;
  const std::vector<fs::path> bases = GroupBases();
  {
    LockForCall();
    const MutexLock lock(mu_, std::adopt_lock);
    std::unique_ptr<LocalJob>& job = jobs_[job_id];
    // The engine that managed a watched job may have gone.
    if (job == nullptr || !job->manages()) {
      auto found = LocalJob::Find(job_id, job_dir, &options_, epoll_.get());
      if (!found.ok() || *found == nullptr) {
        jobs_.erase(job_id);
        if (!found.ok()) return found.status();
        return tasks;
      }
      job = std::move(*found);
      if (job->foreign()) job->SetGroupBases(bases);
    }
    tasks = job->List();
  }
  Wake();
  return tasks;
}

Status LocalEngine::Stop(const std::string& job_id, milliseconds grace) {
  TRY(CheckName("job id", job_id));
  std::vector<fs::path> bases = GroupBases();
  {
    LockForCall();
    MutexLock lock(mu_, std::adopt_lock);
    if (auto it = jobs_.find(job_id); it != jobs_.end()) {
      it->second->Stop(options_.clock->Now() + grace);
      for (const fs::path& base : it->second->group_bases()) bases.push_back(base);
      Wake();
      const auto gone = [&]() REQUIRES(mu_) {
        auto job = jobs_.find(job_id);
        return !publishing_ && (job == jobs_.end() || !job->second->AnyAlive());
      };
      if (!changed_.wait_for(lock, grace + kKillPatience, gone)) {
        return DeadlineExceeded("a task of job " + job_id +
                                " does not end though it was killed; it hangs in the kernel");
      }
    }
  }
  TRY(RemoveJobRemains(job_id, bases));
  LockForCall();
  const MutexLock lock(mu_, std::adopt_lock);
  if (auto it = jobs_.find(job_id); it != jobs_.end()) {
    it->second->RemoveRecords();
    jobs_.erase(it);
  }
  return Status::Ok();
}

Result<Endpoint> LocalEngine::Dial(const std::string& job_id) {
  TRY_ASSIGN(const std::string dir, JobDir(job_id));
  if (options_.no_shared_filesystem) {
    TRY_ASSIGN(const uint16_t port, IsolatedCoordinatorPort(dir));
    return Endpoint{"127.0.0.1", port};
  }
  TRY_ASSIGN(const CoordinatorLocation place, ReadCoordinatorLocation(job_id, dir));
  if (!host::IsAlive(static_cast<pid_t>(place.pid))) {
    return Unavailable("the coordinator of job " + job_id + " (process " +
                       std::to_string(place.pid) +
                       ") has ended; it is started again if the job has not");
  }
  return place.endpoint;
}

}  // namespace

Result<std::unique_ptr<Engine>> MakeLocalEngine(LocalEngineOptions options) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid())
    return ErrnoStatus(errno, "cannot start the local engine: no file descriptors");
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0)
    return ErrnoStatus(errno, "cannot start the local engine");
  return std::unique_ptr<Engine>(
      std::make_unique<LocalEngine>(std::move(options), std::move(epoll), std::move(wake)));
}

}  // namespace shoal::engine
