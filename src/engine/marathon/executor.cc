// `shoal marathon hold DIR ROLE`: the program of every instance of a role's app. Marathon has no
// task indices and restarts every instance that ends. Therefore an executor acquires the first free
// slot of its role (a lock on the slot's file), runs that task according to the desired state, logs
// its events, and keeps the slot after the task has ended. It exits only when Marathon tells it to.
//
//   orders.json ─inotify, else each second─▶ TaskTable ─DueActions─▶ spawn, signal ─▶
//   places/ROLE-N.jsonl
//
// Single-threaded; wakes up at least once a second.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "engine/agent/desired_state.h"
#include "engine/agent/desired_state_watcher.h"
#include "engine/agent/task_table.h"
#include "engine/exec/local_exec.h"
#include "engine/marathon/app_spec.h"
#include "engine/marathon/marathon_helper.h"
#include "engine/process/child_process.h"
#include "engine/process/spawn.h"
#include "engine/process/task_process.h"
#include "engine/tasks/job_files.h"
#include "job/execution/job_dir.h"
#include "net/address.h"

namespace shoal::engine::marathon {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Less than taskKillGracePeriodSeconds of the app, after which Mesos sends SIGKILL.
constexpr milliseconds kMarathonsPatience{20'000};
constexpr size_t kLogTail = 4096;
constexpr int kExcluded = 1;  // exit code that makes Marathon start an instance on another agent

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The address at which other tasks reach this one: of the agent's name, else of the route.
std::string AgentAddress() {
  const std::string host = Variable("HOST");
  const std::string address = host.empty() ? "" : net::AdvertisedHost(host).value_or("");
  return address.empty() ? "127.0.0.1" : address;
}

// Loop of one instance: acquire a slot, carry out due actions, log events, wait for input. Owns at
// most one slot and one child. Single-threaded.
class Executor {
 public:
  Executor(std::string job_dir, std::string role)
      : job_dir_(std::move(job_dir)), role_(std::move(role)) {}

  Result<int> Run() {
    SetLogName("marathon-holder");
    TRY(Prepare());
    for (;;) {
      LeaveExcluded();
      if (!slot_ && !stopping_) AcquireSlot();
      if (!slot_ && !stopping_ && IsExcluded()) return kExcluded;
      Act();
      Write();
      if (stopping_ && !child_) return 0;
      ReleaseSlot();
      Wait();
    }
  }

 private:
  using Incarnation = TaskTable::Incarnation;
  // The slot that this executor owns; the lock is released by closing the file.
  struct Slot {
    int index = 0;
    UniqueFd file;  // locked
    TaskTable table;
  };
  // The running launcher or coordinator.
  struct Child {
    Incarnation life;
    Spawned process;
  };

  Status Prepare() {
    TRY_ASSIGN(watch_, DesiredStateWatcher::Make(job_dir_, {SIGTERM, SIGINT, SIGHUP}));
    auto orders = ReadDesiredState(job_dir_);
    if (!orders.ok())
      return orders.status().With("the agent " + Variable("HOST") +
                                  " does not see the job's directory; put SHOAL_HOME on a file "
                                  "system that all agents mount at the same path");
    desired_state_ = std::move(*orders);
    return MakeDirectories(SlotsDir(job_dir_), 0700);
  }

  static TimePoint Now() { return RealClock::Get()->Now(); }

  // ---- The slot ----

  void AcquireSlot() {
    if (desired_state_.stop) return;
    for (const AgentTask& task : desired_state_.tasks) {
      if (task.task.role == role_ && !ExcludedHere(task) && TryAcquire(task)) return;
    }
  }

  // Releases the slot of a task that excludes this agent. An executor on another agent continues as
  // after a loss.
  void LeaveExcluded() {
    if (!slot_ || child_ || stopping_ || desired_state_.stop) return;
    const AgentTask* const wanted = Wanted();
    if (wanted == nullptr || !ExcludedHere(*wanted)) return;
    Write();
    LogWarning("{} {} is not to run on this agent, {}, any more", role_, slot_->index,
               Variable("HOST"));
    slot_.reset();
  }

  static bool ExcludedHere(const AgentTask& ordered) {
    const auto& hosts = ordered.task.excluded_hosts;
    return std::find(hosts.begin(), hosts.end(), Variable("HOST")) != hosts.end();
  }

  // The role has a task that must not run on this agent.
  bool IsExcluded() const {
    return std::any_of(
        desired_state_.tasks.begin(), desired_state_.tasks.end(),
        [&](const auto& ordered) { return ordered.task.role == role_ && ExcludedHere(ordered); });
  }

  // Acquires the slot of `wanted`. False if another executor owns it.
  bool TryAcquire(const AgentTask& wanted) {
    const int index = wanted.task.index;
    const fs::path path = SlotPath(job_dir_, role_, index);
    auto file = OpenFile(path, O_RDWR | O_CREAT | O_APPEND, 0600);
    if (!file.ok() || ::flock(file->get(), LOCK_EX | LOCK_NB) != 0) return false;
    TaskTable table(desired_state_.job_id);
    AgentEventReader reader(path);
    std::optional<AgentEvent> last;
    for (auto lines = reader.Read(); lines.ok() && !lines->empty(); lines = reader.Read()) {
      for (AgentEvent& line : *lines) {
        if (line.kind == EventKind::kAgentExited) table.Reset();
        if (line.kind != EventKind::kTask) continue;
        table.Replay(line.event);
        last = std::move(line);
      }
    }
    if (last && last->revision != wanted.revision) table.Reset();
    table.MarkRunningLost(Now(), "was lost with its Mesos task" + (last ? " " + last->node : ""));
    slot_.emplace(Slot{index, std::move(*file), std::move(table)});
    revision_ = wanted.revision;
    ApplyDesiredState();
    return true;
  }

  // Releases the slot when its task is no longer listed and has ended.
  void ReleaseSlot() {
    if (!slot_ || child_ || desired_state_.stop || stopping_ || Wanted() != nullptr) return;
    Append(EncodeAgentEvent({EventKind::kAgentExited, {}, revision_, TaskId()}));
    slot_.reset();
  }

  const AgentTask* Wanted() const {
    for (const AgentTask& task : desired_state_.tasks) {
      if (task.task.role == role_ && task.task.index == slot_->index) return &task;
    }
    return nullptr;
  }

  void ApplyDesiredState() {
    if (!slot_ || stopping_) return;
    DesiredState mine = desired_state_;
    std::erase_if(mine.tasks, [&](const AgentTask& task) {
      return task.task.role != role_ || task.task.index != slot_->index;
    });
    if (!mine.tasks.empty()) revision_ = mine.tasks[0].revision;
    slot_->table.ApplyDesiredState(mine, Now());
  }

  // ---- Input ----

  void Wait() {
    std::vector<pollfd> polls = {{child_ ? child_->process.pidfd.get() : -1, POLLIN, 0}};
    watch_.Wait(&polls, next_ ? std::optional<Duration>(*next_ - Now()) : std::nullopt);
    if (child_ && polls[0].revents != 0) TakeEnd();
    for (size_t told = watch_.ReadSignals().size(); told > 0; --told) OnStopSignal();
    if (auto orders = watch_.PollDesiredState(desired_state_.revision)) {
      desired_state_ = std::move(*orders);
      ApplyDesiredState();
    }
  }

  // Marathon ends this Mesos task. If the task is still listed, another executor starts it again.
  // The coordinator gets SIGKILL because it would treat SIGTERM as the end of the job.
  void OnStopSignal() {
    stopping_ = true;
    if (IsCoordinator(role_) && child_) Signal(child_->life, SIGKILL);
    if (slot_)
      slot_->table.StopAll(Now() + std::min(desired_state_.grace, kMarathonsPatience), true);
  }

  void TakeEnd() {
    int status = -1;
    const Child child = std::move(*child_);
    child_.reset();
    (void)ReadEnd(child.process.pidfd.get(), child.process.pid, child.process.start_ticks, &status);
    if (IsCoordinator(role_)) {  // its published address is no longer valid
      std::error_code ignored;
      fs::remove(job::JobDir(job_dir_).coordinator(), ignored);
    }
    const fs::path log = TaskLogPath(job_dir_, role_, child.life.key.second);
    slot_->table.OnEnded(child.life, Now(), DecodeWaitStatus(status),
                         ReadTail(log, kLogTail).value_or(""));
  }

  // ---- Actions ----

  void Act() {
    next_.reset();
    if (!slot_) return;
    const TaskTable::DueActions due = slot_->table.Step(Now());
    next_ = due.next;
    for (const Incarnation& life : due.start) Start(life);
    for (const Incarnation& life : due.term) Signal(life, SIGTERM);
    for (const Incarnation& life : due.kill) Signal(life, SIGKILL);
  }

  void Signal(const Incarnation& life, int signal) {
    if (child_ && child_->life == life) (void)SignalProcess(child_->process.pidfd.get(), signal);
  }

  void Start(const Incarnation& life) {
    DesiredTask task = slot_->table.Find(life.key)->task;
    if (life.incarnation > 0)
      KillEarlierIncarnations(desired_state_.job_id, role_, life.key.second, life.incarnation);
    if (task.argv[0] == desired_state_.program) {
      std::error_code error;
      task.argv[0] = fs::read_symlink("/proc/self/exe", error).string();
    }
    if (IsCoordinator(role_)) {
      task.env.emplace("SHOAL_COORDINATOR_HOST", AgentAddress());
      if (const std::string port = Variable("PORT0"); !port.empty())
        task.env.emplace("SHOAL_COORDINATOR_PORT", port);
    }
    std::vector<std::string> env = WithoutMarathon(CurrentEnvironment());
    if (const std::string host = Variable("HOST"); !host.empty())
      env.push_back(std::string(kNodeVariable) + "=" + host);
    env.emplace_back("SHOAL_SIGNALS_ALL=1");  // Mesos does (rendezvous/launcher/engine_interface.h)
    if (task.resources.gpu > 0) env.emplace_back("SHOAL_GPUS_GIVEN=1");  // Mesos leases them
    const TaskIdentity place{desired_state_.job_id, job_dir_, role_, life.key.second,
                             life.incarnation};
    auto process = Spawn(MakeSpawnSpec(place, task, std::move(env)));
    if (!process.ok()) return slot_->table.OnRefused(life, process.status().message());
    child_.emplace(Child{life, std::move(*process)});
    slot_->table.OnStarted(life, Now());
  }

  // ---- Event log ----

  static std::string TaskId() { return Variable("MESOS_TASK_ID"); }

  void Write() {
    if (!slot_) return;
    std::string text;
    for (TaskEvent& event : slot_->table.DrainEvents())
      text += EncodeAgentEvent({EventKind::kTask, std::move(event), revision_, TaskId()});
    Append(text);
  }

  void Append(const std::string& text) {
    if (text.empty()) return;
    if (const Status written = WriteAll(slot_->file.get(), text); !written.ok())
      LogError("{}: {}", SlotPath(job_dir_, role_, slot_->index).string(), written.message());
  }

  const std::string job_dir_;
  const std::string role_;
  DesiredState desired_state_;
  std::optional<Slot> slot_;
  std::optional<Child> child_;
  int64_t revision_ = 0;
  std::optional<TimePoint> next_;
  bool stopping_ = false;
  DesiredStateWatcher watch_;
};

}  // namespace

Result<int> RunExecutor(const std::string& job_dir, const std::string& role) {
  return Executor(job_dir, role).Run();
}

}  // namespace shoal::engine::marathon
