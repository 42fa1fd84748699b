// The Slurm engine on the login node. Two threads: reader_ reads the agents' event logs (inotify,
// and once a second because inotify misses changes of other hosts); poller_ runs squeue for all
// jobs, at most once a second. All job state is guarded by mu_.
#include "engine/slurm/slurm_engine.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "engine/agent/agent_engine.h"
#include "engine/process/child_process.h"
#include "engine/process/spawn.h"
#include "engine/process/task_process.h"
#include "engine/slurm/batch_script.h"
#include "engine/slurm/immediate_allocation.h"
#include "engine/slurm/slurm_commands.h"
#include "engine/slurm/slurm_exec.h"
#include "engine/slurm/slurm_helper.h"
#include "engine/slurm/slurm_job.h"
#include "engine/tasks/coordinator_location.h"
#include "engine/tasks/event_hub.h"
#include "engine/tasks/job_files.h"

namespace shoal::engine {
namespace {

using slurm::QueuedJob;
using slurm::SlurmJob;
using std::chrono::milliseconds;

constexpr milliseconds kQueueGap{1000};  // minimum between two calls of squeue
constexpr milliseconds kQuietGap{3000};  // interval while no job waits
// Time beyond the grace that an agent gets to end its tasks before scancel ends them.
constexpr milliseconds kAgentPatience{5'000};
constexpr milliseconds kCancelPatience{90'000};  // KillWait and epilogs

// The user's variables for Slurm, and a time format that can be parsed.
std::vector<std::string> SubmitEnvironment() {
  std::vector<std::string> env = CleanEnvironment();
  // Directories of this machine alone; the nodes have their own.
  std::erase_if(env, [](const std::string& entry) {
    return entry.starts_with("TMPDIR=") || entry.starts_with("XDG_RUNTIME_DIR=");
  });
  for (const std::string& entry : CurrentEnvironment()) {
    if (entry.starts_with("SLURM_CONF") || entry.starts_with("SBATCH_") ||
        entry.starts_with("SLURM_CLUSTERS="))
      env.push_back(entry);
  }
  env.push_back("SLURM_TIME_FORMAT=standard");
  return env;
}

// Whether an entry of the queue belongs to the user of a job; none: this process's.
bool IsOf(const QueuedJob& queued, const std::optional<UserIds>& owner) {
  return queued.user == (owner ? owner->uid : ::getuid());
}

std::vector<std::string> CommandEnvironment(const SlurmEngineOptions& options) {
  std::vector<std::string> env =
      options.environment.empty() ? SubmitEnvironment() : options.environment;
  for (const std::string& entry : options.added_environment) {
    const std::string name = entry.substr(0, entry.find('=') + 1);
    std::erase_if(env, [&](const std::string& other) { return other.starts_with(name); });
    env.push_back(entry);
  }
  return env;
}

// A job is added by Apply or Adopt and removed at the end of Stop. asking_ serializes calls of
// squeue and is taken before mu_.
class SlurmEngine final : public AgentEngine<SlurmJob, std::unique_ptr<SlurmJob>>, public Executes {
 public:
  SlurmEngine(SlurmEngineOptions options, DirectoryWatcher changes)
      : AgentEngine(std::move(changes)),
        options_(std::move(options)),
        commands_(CommandEnvironment(options_)) {
    StartReader();
    poller_ = std::thread([this] { PollQueue(); });
  }
  ~SlurmEngine() override {
    StopReader();
    poller_.join();
  }

  std::string name() const override { return "slurm"; }
  bool HasOwnQueue() const override { return true; }
  Result<Capacity> GetCapacity() override { return commands_.Nodes(); }
  Status Apply(const DesiredJob& desired) override;
  Result<std::string> Describe(const DesiredJob& desired) override;
  Status Stop(const std::string& job_id, milliseconds grace) override;
  Result<std::vector<TaskStatus>> Adopt(const std::string& job_id,
                                        const std::string& job_dir) override;
  Result<std::string> TaskLog(const std::string& job_id, const std::string& role, int index,
                              size_t limit) override;
  Executes* executes() override { return this; }
  Result<std::unique_ptr<Execution>> Exec(const std::string& job_id, const std::string& role,
                                          int index, const ExecSpec& spec) override {
    TRY_ASSIGN(const slurm::ExecTarget place, FindTask(job_id, role, index));
    return slurm::ExecByStep(place, spec);
  }
  Result<UniqueFd> DialTask(const std::string& job_id, const std::string& role, int index,
                            uint16_t port) override {
    TRY_ASSIGN(const slurm::ExecTarget place, FindTask(job_id, role, index));
    return slurm::DialByStep(place, port);
  }

 private:
  SlurmJob& JobOf(const std::unique_ptr<SlurmJob>& entry) const override { return *entry; }
  // Reaps children that have ended.
  bool OnReaderWakeup() override REQUIRES(mu_);
  void PollQueue();
  std::vector<TaskEvent> ApplyQueue(const std::vector<QueuedJob>& queue);
  std::vector<TaskEvent> SubmitAgain();
  slurm::SlurmCommands CommandsOf(const SlurmJob& job) const {
    return commands_.For(job.owner(), job.dir());
  }
  static void Cancel(const slurm::SlurmCommands& commands, int64_t number);
  void MarkVanishedJobs();
  // Runs squeue at most once a second over all callers, for each user of a job and `also`.
  Result<std::vector<QueuedJob>> AskQueue(const std::optional<UserIds>& also = std::nullopt);
  // The active Slurm job of `job_id`, also if another process submitted it. `job_dir` holds the
  // recorded allocation.
  Result<std::optional<QueuedJob>> FindInQueue(const std::string& job_id,
                                               const std::string& job_dir);
  // The directory of another controller's job; empty: not known.
  std::string RecordedDir(const std::string& job_id) const {
    return options_.job_dir ? options_.job_dir(job_id) : "";
  }
  Result<slurm::ExecTarget> FindTask(const std::string& job_id, const std::string& role, int index);
  Status EndInSlurm(const std::string& job_id, const std::string& dir, int64_t number);

  SlurmEngineOptions options_;
  const slurm::SlurmCommands commands_;

  Mutex asking_;  // one squeue at a time
  TimePoint asked_ GUARDED_BY(asking_){};
  std::vector<Child> children_ GUARDED_BY(mu_);  // of AllocateImmediately
  std::thread poller_;
};

// ---- the threads ----

bool SlurmEngine::OnReaderWakeup() {
  std::erase_if(children_, [](const Child& child) {
    return ProcessEnded(child.pidfd.get()) && (ReapChild(child), true);
  });
  return !children_.empty();
}

void SlurmEngine::PollQueue() {
  for (;;) {
    {
      MutexLock lock(mu_);
      changed_.wait(lock, [this]() REQUIRES(mu_) { return ending_ || !jobs_.empty(); });
      bool waits = false;
      for (const auto& [id, job] : jobs_) waits = waits || job->waits();
      const milliseconds gap = waits ? kQueueGap : kQuietGap;
      if (changed_.wait_for(lock, gap, [this]() REQUIRES(mu_) { return ending_; })) return;
      if (jobs_.empty()) continue;
    }
    const auto queue = AskQueue();
    if (!queue.ok()) {  // state unknown: no change
      LogInfo("{}", queue.status().message());
      continue;
    }
    Publish(ApplyQueue(*queue));
    Publish(SubmitAgain());
    MarkVanishedJobs();
  }
}

std::vector<TaskEvent> SlurmEngine::ApplyQueue(const std::vector<QueuedJob>& queue) {
  std::vector<TaskEvent> events;
  using Numbers = std::vector<std::pair<slurm::SlurmCommands, int64_t>>;
  Numbers delayed, headless, torn;
  {
    const MutexLock lock(mu_);
    for (auto& [id, job] : jobs_) {
      if (job->number() == 0 || job->stopping() || job->over()) continue;
      const QueuedJob* found = nullptr;
      for (const QueuedJob& one : queue) {
        if (one.number == job->number() && IsOf(one, job->owner())) found = &one;
      }
      std::vector<TaskEvent> told = job->ApplyQueueState(found, options_.clock->Now());
      events.insert(events.end(), told.begin(), told.end());
      if (job->wants_start()) delayed.emplace_back(CommandsOf(*job), job->number());
      if (job->wants_requeue()) headless.emplace_back(CommandsOf(*job), job->number());
      if (!job->is_torn()) continue;
      job->RequestNewAllocation();
      if (job->needs_new_allocation()) continue;
      torn.emplace_back(CommandsOf(*job), job->number());
      told = job->MarkEnded("a node of Slurm's job " + std::to_string(job->number()) +
                            " failed, and with it a component of its allocation");
      events.insert(events.end(), told.begin(), told.end());
    }
  }
  for (const auto& [commands, number] : torn) Cancel(commands, number);
  for (const auto& [commands, number] : headless) {
    LogWarning("Slurm's job {} has lost its first node: it is started again", number);
    const Status requeued = commands.Requeue(number);
    if (requeued.ok()) continue;
    LogWarning("{}; it is cancelled", requeued.message());
    Cancel(commands, number);
  }
  for (const auto& [commands, number] : delayed) {
    if (const Status started = commands.StartNow(number); !started.ok())
      LogInfo("{}", started.message());
  }
  return events;
}

void SlurmEngine::Cancel(const slurm::SlurmCommands& commands, int64_t number) {
  if (const Status ended = commands.Cancel(number); !ended.ok()) LogWarning("{}", ended.message());
}

// Submits jobs again, as batch jobs, whose agents under salloc have ended or whose allocations are
// torn.
std::vector<TaskEvent> SlurmEngine::SubmitAgain() {
  std::vector<TaskEvent> events;
  const MutexLock lock(mu_);
  for (auto& [id, job] : jobs_) {
    if (!job->needs_new_allocation() || job->stopping() || job->over()) continue;
    const auto submit = [&]() REQUIRES(mu_) -> Status {
      TRY_ASSIGN(const std::string script, job->Script());
      const slurm::SlurmCommands commands = CommandsOf(*job);
      if (job->is_torn()) TRY(commands.Cancel(job->number()));
      TRY_ASSIGN(const int64_t number, commands.Submit(script));
      LogInfo("job {} goes on as Slurm's job {}", id, number);
      return job->RecordSubmission({number, false});
    };
    const Status submitted = submit();
    if (submitted.ok()) continue;
    const std::vector<TaskEvent> over =
        job->MarkEnded("it cannot go on in another allocation: " + submitted.message());
    events.insert(events.end(), over.begin(), over.end());
  }
  return events;
}

void SlurmEngine::MarkVanishedJobs() {
  std::map<std::string, std::pair<slurm::SlurmCommands, int64_t>> vanished;
  {
    const MutexLock lock(mu_);
    for (const auto& [id, job] : jobs_) {
      if (job->vanished() && !job->stopping() && !job->over())
        vanished.emplace(id, std::pair(CommandsOf(*job), job->number()));
    }
  }
  for (const auto& [id, asked] : vanished) {
    const auto& [commands, number] = asked;
    const auto ended = commands.ShowEnded(number);
    std::vector<TaskEvent> events;
    {
      const MutexLock lock(mu_);
      const auto job = jobs_.find(id);
      if (job == jobs_.end() || job->second->stopping()) continue;
      if (ended.ok() && slurm::IsEndedBySlurm(ended->state)) job->second->RequestNewAllocation();
      if (job->second->needs_new_allocation()) continue;
      const std::string why = ended.ok() ? slurm::DescribeEnd(*ended, job->second->dir())
                                         : "Slurm has no record of it any more";
      events = job->second->MarkEnded("Slurm's job " + std::to_string(number) + " is over: " + why);
    }
    Publish(events);
  }
}

Result<std::vector<QueuedJob>> SlurmEngine::AskQueue(const std::optional<UserIds>& also) {
  const MutexLock one_at_a_time(asking_);
  if (asked_ != TimePoint{}) {
    MutexLock lock(mu_);
    const Duration left = kQueueGap - (options_.clock->Now() - asked_);
    if (changed_.wait_for(lock, left, [this]() REQUIRES(mu_) { return ending_; }))
      return Cancelled("the engine ends");
  }
  std::map<uid_t, std::optional<UserIds>> users = {{::getuid(), std::nullopt}};
  if (also) users[also->uid] = also;
  {
    const MutexLock lock(mu_);
    for (const auto& [id, job] : jobs_) {
      if (job->owner()) users[job->owner()->uid] = job->owner();
    }
  }
  std::vector<QueuedJob> queue;
  for (const auto& [uid, user] : users) {
    auto some = commands_.For(user, "/").Queue();
    asked_ = options_.clock->Now();
    if (!some.ok()) return some.status();
    std::ranges::move(*some, std::back_inserter(queue));
  }
  return queue;
}

// ---- engine.h ----

Result<std::string> SlurmEngine::Describe(const DesiredJob& desired) {
  TRY(CheckDesiredJob(desired));
  TRY_ASSIGN(const std::vector<slurm::CellPlan> plan, slurm::PlanComponents(desired));
  TRY_ASSIGN(std::string text, slurm::RenderScript(desired, plan, options_.program));
  if (desired.attended && plan.size() == 1)
    text += "\n# First of all the same is asked for at once, by salloc --immediate.";
  text += "\n# Submitted by `sbatch --parsable`, removed by `scancel --name=" + desired.job_id +
          "`.\n# Steps that it starts in its allocation, all tasks of a role by one:\n";
  std::map<std::string, size_t> counts;
  for (const DesiredTask& task : desired.tasks) ++counts[task.role];
  for (const auto& [role, count] : counts) {
    const auto first = std::find_if(desired.tasks.begin(), desired.tasks.end(),
                                    [&](const DesiredTask& task) { return task.role == role; });
    const slurm::CellShare* share = slurm::ShareOf(plan, role);
    if (share == nullptr) continue;
    const std::string group = plan.size() > 1 ? slurm::HetGroupOption(share->component) : "";
    text += "#   " + role + ":";
    for (const std::string& word : slurm::StepArgv(first->resources, count, "NODES", false, group))
      text += " " + word;
    text += "\n";
  }
  return text;
}

Status SlurmEngine::Apply(const DesiredJob& desired) {
  TRY(CheckDesiredJob(desired));
  const MutexLock lock(mu_);
  std::unique_ptr<SlurmJob>& job = jobs_[desired.job_id];
  if (job == nullptr) {
    auto made = SlurmJob::Make(desired.job_id, desired.job_dir);
    if (!made.ok()) {
      jobs_.erase(desired.job_id);
      return made.status();
    }
    job = std::move(*made);
    changes_.Add(EngineDir(job->dir()));
  }
  if (job->stopping()) return FailedPrecondition("job " + desired.job_id + " is being stopped");
  if (job->over()) return FailedPrecondition("job " + desired.job_id + " is over in Slurm");
  DesiredState orders;
  orders.grace = options_.remove_grace;
  orders.restart = options_.restart;
  orders.program = options_.program;
  orders.requeue = desired.slurm.requeue;
  const auto submit = [&]() REQUIRES(mu_) -> Status {
    TRY_ASSIGN(const std::vector<slurm::CellPlan> plan, slurm::PlanComponents(desired));
    TRY_ASSIGN(const std::string script, slurm::RenderScript(desired, plan, options_.program));
    TRY(job->WriteDesired(desired, plan, std::move(orders)));
    if (job->number() != 0) return Status::Ok();
    TRY(job->StoreScript(script));
    // salloc --immediate does not support several components.
    if (desired.attended && plan.size() == 1 && !job->owner() &&
        slurm::CanAllocateImmediately(commands_.environment())) {
      TRY_ASSIGN(const auto request,
                 slurm::MakeImmediateRequest(desired, plan[0], options_.program));
      auto got = slurm::AllocateImmediately(request, commands_.environment(), job->dir());
      if (got.ok()) {
        children_.push_back(std::move(got->salloc));
        children_.push_back(std::move(got->agent));
        return job->RecordGrant({got->number, true});
      }
      LogInfo("job {}: {}; it is submitted as a batch job", desired.job_id, got.status().message());
    }
    TRY_ASSIGN(const int64_t number, CommandsOf(*job).Submit(script));
    return job->RecordSubmission({number, false});
  };
  const Status submitted = submit();
  if (!submitted.ok() && job->number() == 0) {
    job->RemoveRecords();
    jobs_.erase(desired.job_id);
  }
  changed_.notify_all();
  changes_.Wake();
  return submitted;
}

Result<std::optional<QueuedJob>> SlurmEngine::FindInQueue(const std::string& job_id,
                                                          const std::string& job_dir) {
  const std::optional<UserIds> owner = ForeignOwner(job_dir);
  const int64_t number = job_dir.empty() ? 0 : slurm::ReadAllocation(job_dir).number;
  TRY_ASSIGN(std::vector<QueuedJob> queue, AskQueue(owner));
  std::erase_if(queue, [&](const QueuedJob& one) { return !IsOf(one, owner); });
  const QueuedJob* const found = slurm::FindJob(queue, job_id, number);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

Result<std::vector<TaskStatus>> SlurmEngine::Adopt(const std::string& job_id,
                                                   const std::string& job_dir) {
  TRY(CheckName("job id", job_id));
  {
    const MutexLock lock(mu_);
    if (const auto known = jobs_.find(job_id); known != jobs_.end()) return known->second->List();
  }
  const std::string dir = job_dir.empty() ? RecordedDir(job_id) : job_dir;
  TRY_ASSIGN(const std::optional<QueuedJob> queued, FindInQueue(job_id, dir));
  if (!queued) return std::vector<TaskStatus>();
  auto found = SlurmJob::Find(job_id, dir.empty() ? queued->work_dir : dir);
  if (!found.ok()) return found.status();
  const MutexLock lock(mu_);
  std::unique_ptr<SlurmJob>& job = jobs_[job_id];
  if (job == nullptr) job = std::move(*found);
  if (job->number() != queued->number) TRY(job->RecordSubmission({queued->number, false}));
  changes_.Add(EngineDir(job->dir()));
  changed_.notify_all();
  changes_.Wake();
  return job->List();
}

Status SlurmEngine::Stop(const std::string& job_id, milliseconds grace) {
  TRY(CheckName("job id", job_id));
  int64_t number = 0;
  bool closed = false;
  std::string dir = RecordedDir(job_id);
  {
    MutexLock lock(mu_);
    if (const auto it = jobs_.find(job_id); it != jobs_.end()) {
      SlurmJob* const job = it->second.get();
      number = job->number();
      dir = job->dir();
      if (!job->over()) TRY(job->WriteStop(grace));
      const bool runs = job->begun() && !job->closed() && !job->over();
      const auto done = [&]() REQUIRES(mu_) { return publishing_ == 0 && job->closed(); };
      if (runs) changed_.wait_for(lock, grace + kAgentPatience, done);
      closed = job->closed() || job->over();
    }
  }
  if (number == 0) {
    TRY_ASSIGN(const std::optional<QueuedJob> queued, FindInQueue(job_id, dir));
    if (queued) number = queued->number;
  }
  if (number != 0 && !closed) TRY(EndInSlurm(job_id, dir, number));
  FinishStopped(job_id);
  return Status::Ok();
}

Status SlurmEngine::EndInSlurm(const std::string& job_id, const std::string& dir, int64_t number) {
  const std::optional<UserIds> owner = ForeignOwner(dir);
  const slurm::SlurmCommands commands = commands_.For(owner, dir);
  const TimePoint until = options_.clock->Now() + kCancelPatience;
  for (;;) {
    if (const Status cancelled = commands.Cancel(number);
        !cancelled.ok() && cancelled.code() == Code::kUnavailable)
      return cancelled;
    TRY_ASSIGN(const std::vector<QueuedJob> queue, AskQueue(owner));
    bool active = false;
    for (const QueuedJob& one : queue)
      active = active || (one.number == number && IsOf(one, owner) && slurm::IsActive(one.state));
    if (!active) return Status::Ok();
    if (options_.clock->Now() > until)
      return DeadlineExceeded("Slurm's job " + std::to_string(number) + " of job " + job_id +
                              " does not end though it was cancelled; `scontrol show job " +
                              std::to_string(number) + "` says why");
  }
}

Result<std::string> SlurmEngine::TaskLog(const std::string& job_id, const std::string& role,
                                         int index, size_t limit) {
  TRY(CheckName("role", role));
  TRY_ASSIGN(const std::string dir, JobDir(job_id));
  const FileAccessAs owner(dir);
  TRY_ASSIGN(std::string text, ReadTail(TaskLogPath(dir, role, index), limit));
  if (!text.empty() || !IsCoordinator(role)) return text;
  return ReadTail(slurm::AgentLogPath(dir), limit);
}

Result<slurm::ExecTarget> SlurmEngine::FindTask(const std::string& job_id, const std::string& role,
                                                int index) {
  TRY(CheckName("role", role));
  const std::string dir = RecordedDir(job_id);
  TRY_ASSIGN(const std::optional<QueuedJob> queued, FindInQueue(job_id, dir));
  if (!queued) return NotFound("Slurm has no running job of " + job_id);
  TRY_ASSIGN(const std::unique_ptr<SlurmJob> view,
             SlurmJob::Find(job_id, dir.empty() ? queued->work_dir : dir));
  const SlurmJob::Location where = view->LocationOf(role, index);
  if (where.node.empty())
    return NotFound(role + "-" + std::to_string(index) + " of job " + job_id +
                    " does not run now; `shoal show " + job_id + "` says how its tasks are");
  const std::string group = queued->heterogeneous ? slurm::HetGroupOption(where.component) : "";
  return slurm::ExecTarget{options_.program,
                           commands_.environment(),
                           queued->number,
                           where.node,
                           job_id,
                           role,
                           index,
                           group};
}

}  // namespace

Result<std::unique_ptr<Engine>> MakeSlurmEngine(SlurmEngineOptions options) {
  TRY_ASSIGN(DirectoryWatcher changes, DirectoryWatcher::Make("the Slurm engine"));
  return std::unique_ptr<Engine>(
      std::make_unique<SlurmEngine>(std::move(options), std::move(changes)));
}

}  // namespace shoal::engine
