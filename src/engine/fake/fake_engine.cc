#include "engine/fake/fake_engine.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "base/mutex.h"
#include "engine/tasks/task_state.h"

namespace shoal::engine {
namespace {

using std::chrono::milliseconds;
using Key = std::pair<std::string, int>;

// Between SIGTERM and SIGKILL of a task that Apply no longer names.
constexpr milliseconds kRemoveGrace{10'000};

// One simulated task.
struct FakeTask : TaskState {
  DesiredTask desired;
  TaskKnobs knobs;  // of this incarnation
  std::string host;
  int64_t pid = 0;
  bool alive = false;
  std::optional<TimePoint> running_at;  // it has come up
  std::optional<TimePoint> end_at;      // by itself
  bool lost = false;                    // killed from outside: ends now
};

// One simulated job.
struct FakeJob {
  std::string id;
  std::map<Key, FakeTask> tasks;
  std::vector<Key> order;
  std::map<Key, int> incarnations;
  std::map<Key, std::string> logs;
  std::optional<Endpoint> endpoint;
  bool applied = false;
};

}  // namespace

// State shared by all copies of a FakeWorld.
struct FakeWorldState {
  FakeClock* clock = nullptr;
  mutable Mutex mu;
  Capacity capacity;  // the rest is guarded by mu
  std::vector<std::string> hosts = {"here"};
  std::map<Key, TaskKnobs> knobs;
  std::map<std::string, FakeJob> jobs;
  FakeWorld::ExecBehavior exec;
  std::weak_ptr<EventHub> hub;  // of the engine that is there
  RestartRules restart;
  int64_t next_pid = 1000;
  std::vector<TaskEvent> events;  // not yet told

  void Step(TimePoint now);
  std::optional<TimePoint> NextDue() const;
  void Start(FakeJob* job, const Key& key, FakeTask* task, TimePoint now);
  void End(FakeJob* job, const Key& key, FakeTask* task, TaskEnd end, TimePoint now);
  void StepTask(FakeJob* job, const Key& key, FakeTask* task, TimePoint now);
  void AddEvent(const FakeJob& job, const Key& key, const FakeTask& task, TaskEnd end = {});
  void Publish(MutexLock* lock) REQUIRES(mu) NO_THREAD_SAFETY_ANALYSIS;
};

void FakeWorldState::AddEvent(const FakeJob& job, const Key& key, const FakeTask& task,
                              TaskEnd end) {
  events.push_back({job.id, key.first, key.second, task.incarnation, task.phase, std::move(end)});
}

void FakeWorldState::Start(FakeJob* job, const Key& key, FakeTask* task, TimePoint now) {
  task->start_at.reset();
  task->incarnation = job->incarnations[key]++;
  task->started = now;
  task->phase = TaskPhase::kStarting;
  auto set = knobs.find(key);
  task->knobs = set == knobs.end() ? TaskKnobs() : set->second;
  if (task->knobs.only_first && task->incarnation > 0) task->knobs = TaskKnobs();
  AddEvent(*job, key, *task);
  std::string refusal = task->knobs.refuse;
  const auto& avoided = task->desired.excluded_hosts;
  const auto host = std::find_if(hosts.begin(), hosts.end(), [&](const std::string& one) {
    return std::find(avoided.begin(), avoided.end(), one) == avoided.end();
  });
  if (host == hosts.end()) refusal = "there is no host that is not excluded for it";
  if (!refusal.empty()) {
    task->phase = TaskPhase::kRefused;
    TaskEnd end;
    end.reason = refusal;
    return AddEvent(*job, key, *task, end);
  }
  task->host = *host;
  task->alive = true;
  task->stop_requested = task->lost = false;
  task->pid = next_pid++;
  task->running_at = now + task->knobs.start_delay;
  task->end_at.reset();
  task->kill_at.reset();
}

void FakeWorldState::End(FakeJob* job, const Key& key, FakeTask* task, TaskEnd end, TimePoint now) {
  task->alive = false;
  task->pid = 0;
  task->running_at.reset();
  task->end_at.reset();
  task->ApplyEnd({restart, task->desired.restart_if_lost, false}, now, &end,
                 [&] { return job->logs[key]; });
  AddEvent(*job, key, *task, end);
}

void FakeWorldState::StepTask(FakeJob* job, const Key& key, FakeTask* task, TimePoint now) {
  if (task->start_at && *task->start_at <= now && task->listed && job->applied)
    Start(job, key, task, now);
  if (task->alive && task->running_at && *task->running_at <= now) {
    task->running_at.reset();
    task->phase = TaskPhase::kRunning;
    if (!task->knobs.says.empty()) job->logs[key] += task->knobs.says + "\n";
    if (task->knobs.run_for) task->end_at = now + *task->knobs.run_for;
    AddEvent(*job, key, *task);
  }
  if (!task->alive) return;
  TaskEnd end;
  if (task->lost || (task->kill_at && *task->kill_at <= now)) {
    end.signal = SIGKILL;
    End(job, key, task, end, now);
  } else if (task->stop_requested && !task->knobs.ignores_term) {
    end.signal = SIGTERM;
    End(job, key, task, end, now);
  } else if (task->end_at && *task->end_at <= now) {
    end.signal = task->knobs.signal;
    end.exit_code = end.signal == 0 ? task->knobs.exit_code : -1;
    end.out_of_memory = task->knobs.out_of_memory;
    if (end.out_of_memory) end.reason = "exceeded its memory";
    End(job, key, task, end, now);
  }
}

void FakeWorldState::Step(TimePoint now) {
  for (auto& [id, job] : jobs) {
    std::erase_if(job.order, [&, owner = &job](const Key& key) {
      FakeTask& task = owner->tasks.at(key);
      StepTask(owner, key, &task, now);
      if (task.listed || task.alive) return false;
      owner->tasks.erase(key);
      return true;
    });
  }
}

std::optional<TimePoint> FakeWorldState::NextDue() const {
  std::optional<TimePoint> next;
  for (const auto& [id, job] : jobs) {
    for (const auto& [key, task] : job.tasks) {
      for (const auto& due : {task.start_at, task.running_at, task.end_at, task.kill_at}) {
        if (due && (!next || *due < *next)) next = due;
      }
    }
  }
  return next;
}

// Lets go of the lock: a watcher may call the engine.
void FakeWorldState::Publish(MutexLock* lock) {
  const std::vector<TaskEvent> told = std::exchange(events, {});
  const std::shared_ptr<EventHub> engine = hub.lock();
  lock->unlock();
  if (engine != nullptr) {
    for (const TaskEvent& event : told) engine->Publish(event);
  }
  lock->lock();
}

FakeWorld::FakeWorld(FakeClock* clock, Capacity capacity)
    : state_(std::make_shared<FakeWorldState>()) {
  state_->clock = clock;
  state_->capacity = capacity;
}

void FakeWorld::SetKnobs(const std::string& role, int index, TaskKnobs knobs) {
  const MutexLock lock(state_->mu);
  state_->knobs[{role, index}] = std::move(knobs);
}

void FakeWorld::SetHosts(std::vector<std::string> hosts) {
  const MutexLock lock(state_->mu);
  state_->hosts = std::move(hosts);
}

void FakeWorld::SetCapacity(Capacity capacity) {
  const MutexLock lock(state_->mu);
  state_->capacity = capacity;
}

void FakeWorld::SetEndpoint(const std::string& job_id, std::optional<Endpoint> endpoint) {
  const MutexLock lock(state_->mu);
  FakeJob& job = state_->jobs[job_id];
  job.id = job_id;
  job.endpoint = std::move(endpoint);
}

void FakeWorld::KillTask(const std::string& job_id, const std::string& role, int index) {
  const MutexLock lock(state_->mu);
  auto job = state_->jobs.find(job_id);
  if (job == state_->jobs.end()) return;
  auto task = job->second.tasks.find({role, index});
  if (task != job->second.tasks.end()) task->second.lost = task->second.alive;
}

void FakeWorld::Advance(milliseconds by) {
  MutexLock lock(state_->mu);
  const TimePoint end = state_->clock->Now() + by;
  state_->Step(state_->clock->Now());
  state_->Publish(&lock);
  for (;;) {
    const auto next = state_->NextDue();
    const TimePoint now = state_->clock->Now();
    if (now >= end && (!next || *next > now)) return;
    const TimePoint to = next && *next < end ? std::max(*next, now) : end;
    state_->clock->Advance(to - now);
    state_->Step(to);
    state_->Publish(&lock);
  }
}

int FakeWorld::Running(const std::string& job_id) const {
  const MutexLock lock(state_->mu);
  auto job = state_->jobs.find(job_id);
  if (job == state_->jobs.end()) return 0;
  return static_cast<int>(std::count_if(job->second.tasks.begin(), job->second.tasks.end(),
                                        [](const auto& entry) { return entry.second.alive; }));
}

Result<DesiredTask> FakeWorld::Started(const std::string& job_id, const std::string& role,
                                       int index) const {
  const MutexLock lock(state_->mu);
  auto job = state_->jobs.find(job_id);
  if (job != state_->jobs.end()) {
    auto task = job->second.tasks.find({role, index});
    if (task != job->second.tasks.end() && task->second.alive) {
      DesiredTask started = task->second.desired;
      started.env[kNodeVariable] = task->second.host;
      return started;
    }
  }
  return NotFound("no task " + role + " " + std::to_string(index) + " of job " + job_id + " runs");
}

FakeEngine::FakeEngine(FakeWorld world, RestartRules restart)
    : world_(world.state_), restart_(restart) {
  const MutexLock lock(world_->mu);
  world_->hub = hub();
  world_->restart = restart_;
}

FakeEngine::~FakeEngine() = default;

Result<Capacity> FakeEngine::GetCapacity() {
  const MutexLock lock(world_->mu);
  return world_->capacity;
}

Status FakeEngine::Apply(const DesiredJob& desired) {
  TRY(CheckDesiredJob(desired));
  const MutexLock lock(world_->mu);
  const TimePoint now = world_->clock->Now();
  FakeJob& job = world_->jobs[desired.job_id];
  job.id = desired.job_id;
  job.applied = true;
  const auto want = [&](const DesiredTask& wish, const TaskKey& key, FakeTask* task, bool fresh) {
    if (fresh) job.order.push_back(key);
    // No longer wanted, and ended, but not forgotten yet: as if it had been.
    const bool again = !fresh && !task->listed && !task->alive;
    task->listed = true;
    task->desired = wish;
    if (fresh || again || task->phase == TaskPhase::kRefused) task->ResetForStart(now);
  };
  MatchTasks(desired.tasks, &job.tasks, want, [&](FakeTask* task) {
    task->listed = false;
    task->start_at.reset();
    if (task->alive && !task->stop_requested) task->kill_at = now + kRemoveGrace;
    task->stop_requested = task->alive;
  });
  return Status::Ok();
}

Status FakeEngine::Stop(const std::string& job_id, milliseconds grace) {
  TRY(CheckName("job id", job_id));
  MutexLock lock(world_->mu);
  auto it = world_->jobs.find(job_id);
  if (it == world_->jobs.end()) return Status::Ok();
  FakeJob& job = it->second;
  bool waits = false;
  for (auto& [key, task] : job.tasks) {
    task.start_at.reset();
    task.listed = false;
    task.stop_requested = task.alive;
    waits = waits || (task.alive && task.knobs.ignores_term);
    if (task.alive) task.kill_at = world_->clock->Now() + grace;
  }
  world_->Step(world_->clock->Now());
  if (waits) {  // the caller blocks here and cannot advance the clock
    world_->clock->Advance(grace);
    world_->Step(world_->clock->Now());
  }
  world_->Publish(&lock);
  world_->jobs.erase(job_id);
  return Status::Ok();
}

Result<std::vector<TaskStatus>> FakeEngine::Adopt(const std::string& job_id,
                                                  const std::string& /*job_dir*/) {
  TRY(CheckName("job id", job_id));
  const MutexLock lock(world_->mu);
  std::vector<TaskStatus> tasks;
  auto job = world_->jobs.find(job_id);
  if (job == world_->jobs.end()) return tasks;
  bool any = false;
  for (const Key& key : job->second.order) {
    const FakeTask& task = job->second.tasks.at(key);
    any = any || task.alive;
    tasks.push_back({key.first, key.second, task.incarnation, task.phase, task.pid});
  }
  if (!any) tasks.clear();
  return tasks;
}

Result<Endpoint> FakeEngine::Dial(const std::string& job_id) {
  const MutexLock lock(world_->mu);
  auto job = world_->jobs.find(job_id);
  if (job == world_->jobs.end()) return NotFound("no job " + job_id + " is run by this engine");
  if (job->second.endpoint) return *job->second.endpoint;
  return Unavailable("the coordinator of job " + job_id + " does not listen yet");
}

Result<std::string> FakeEngine::TaskLog(const std::string& job_id, const std::string& role,
                                        int index, size_t limit) {
  const MutexLock lock(world_->mu);
  auto job = world_->jobs.find(job_id);
  if (job == world_->jobs.end()) return NotFound("no job " + job_id + " is run by this engine");
  const std::string& log = job->second.logs[{role, index}];
  return log.size() > limit ? log.substr(log.size() - limit) : log;
}

namespace {

// A command that does nothing before it is waited for.
class FakeExecution final : public Execution {
 public:
  FakeExecution(std::function<bool()> lives, std::function<ExecEnd()> does)
      : lives_(std::move(lives)), does_(std::move(does)) {}

  void Signal(int signal) override {
    int none = 0;
    signal_.compare_exchange_strong(none, signal);
  }
  void Resize(uint16_t /*rows*/, uint16_t /*columns*/) override {}
  Result<ExecEnd> Wait() override {
    if (!lives_()) return ExecEnd{-1, SIGKILL};
    if (const int signal = signal_.load(); signal != 0) return ExecEnd{-1, signal};
    return does_ ? does_() : ExecEnd{0, 0};
  }

 private:
  const std::function<bool()> lives_;
  const std::function<ExecEnd()> does_;
  std::atomic<int> signal_{0};
};

}  // namespace

void FakeWorld::SetExec(ExecBehavior does) {
  const MutexLock lock(state_->mu);
  state_->exec = std::move(does);
}

Result<std::unique_ptr<Execution>> FakeEngine::Exec(const std::string& job_id,
                                                    const std::string& role, int index,
                                                    const ExecSpec& spec) {
  if (spec.argv.empty()) return InvalidArgument("got no command, expected one");
  const MutexLock lock(world_->mu);
  const auto incarnation = [world = world_, job_id,
                            key = Key(role, index)]() -> std::optional<int> {
    const auto job = world->jobs.find(job_id);
    if (job == world->jobs.end()) return std::nullopt;
    const auto task = job->second.tasks.find(key);
    if (task == job->second.tasks.end() || task->second.phase != TaskPhase::kRunning)
      return std::nullopt;
    return task->second.incarnation;
  };
  const auto running = incarnation();
  if (!running)
    return NotFound(role + " " + std::to_string(index) + " of job " + job_id + " does not run");
  const auto lives = [world = world_, incarnation, running] {
    const MutexLock guard(world->mu);
    return incarnation() == running;
  };
  std::function<ExecEnd()> does;
  if (world_->exec)
    does = [exec = world_->exec, role, index, spec] { return exec(role, index, spec); };
  return std::unique_ptr<Execution>(std::make_unique<FakeExecution>(lives, std::move(does)));
}

Result<UniqueFd> FakeEngine::DialTask(const std::string& /*job_id*/, const std::string& /*role*/,
                                      int /*index*/, uint16_t /*port*/) {
  return Unimplemented("the engine fake cannot reach ports of tasks");
}

}  // namespace shoal::engine
