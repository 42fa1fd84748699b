// `shoal marathon hold DIR ROLE`: what every instance of a role's app is. Marathon knows no
// indices and starts again whatever ends, so a holder takes the first place of its role that
// nobody holds (a lock on the place's file), runs that task as the orders say, writes what becomes
// of it, and goes on holding when the task has ended. It ends when Marathon says so.
//
//   orders.json ─inotify, else each second─▶ TaskTable ─DueActions─▶ spawn, signal ─▶
//   places/ROLE-N.jsonl
//
// One thread; asleep but for a look each second.
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

// Before Mesos kills what it told to end (taskKillGracePeriodSeconds of the app).
constexpr milliseconds kMarathonsPatience{20'000};
constexpr size_t kLogTail = 4096;
constexpr int kExcluded = 1;  // its exit code: Marathon is to put another instance elsewhere

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Where the other tasks reach this one: the numeric address of the agent's name, else of the route.
std::string AgentAddress() {
  const std::string host = Variable("HOST");
  const std::string address = host.empty() ? "" : net::AdvertisedHost(host).value_or("");
  return address.empty() ? "127.0.0.1" : address;
}

class Executor {
 public:
  Executor(std::string job_dir, std::string role)
      : job_dir_(std::move(job_dir)), role_(std::move(role)) {}

  Result<int> Run() {
    SetLogName("marathon-holder");
    TRY(Prepare());
    for (;;) {
      LeaveExcluded();
      if (!place_ && !told_to_end_) AcquireSlot();
      if (!place_ && !told_to_end_ && IsExcluded()) return kExcluded;
      Act();
      Write();
      if (told_to_end_ && !child_) return 0;
      ReleaseSlot();
      Wait();
    }
  }

 private:
  using Incarnation = TaskTable::Incarnation;
  struct Slot {
    int index = 0;
    UniqueFd file;  // locked
    TaskTable table;
  };
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
    orders_ = std::move(*orders);
    return MakeDirectories(SlotsDir(job_dir_), 0700);
  }

  static TimePoint Now() { return RealClock::Get()->Now(); }

  // ---- The place ----

  void AcquireSlot() {
    if (orders_.stop) return;
    for (const AgentTask& task : orders_.tasks) {
      if (task.task.role == role_ && !ExcludedHere(task) && Take(task)) return;
    }
  }

  // A task that is not to run on this agent any more leaves the place to another agent's holder,
  // which goes on as after a loss.
  void LeaveExcluded() {
    if (!place_ || child_ || told_to_end_ || orders_.stop) return;
    const AgentTask* const wanted = Wanted();
    if (wanted == nullptr || !ExcludedHere(*wanted)) return;
    Write();
    LogWarning("{} {} is not to run on this agent, {}, any more", role_, place_->index,
               Variable("HOST"));
    place_.reset();
  }

  static bool ExcludedHere(const AgentTask& ordered) {
    const auto& hosts = ordered.task.excluded_hosts;
    return std::find(hosts.begin(), hosts.end(), Variable("HOST")) != hosts.end();
  }

  // There is, or will be, something of the role to do that is not to be done here.
  bool IsExcluded() const {
    return std::any_of(orders_.tasks.begin(), orders_.tasks.end(), [&](const auto& ordered) {
      return ordered.task.role == role_ && ExcludedHere(ordered);
    });
  }

  // False if somebody else holds it.
  bool Take(const AgentTask& wanted) {
    const int index = wanted.task.index;
    const fs::path path = SlotPath(job_dir_, role_, index);
    auto file = OpenFile(path, O_RDWR | O_CREAT | O_APPEND, 0600);
    if (!file.ok() || ::flock(file->get(), LOCK_EX | LOCK_NB) != 0) return false;
    TaskTable table(orders_.job_id);
    AgentEventReader reader(path);
    std::optional<AgentEvent> last;
    for (auto lines = reader.Read(); lines.ok() && !lines->empty(); lines = reader.Read()) {
      for (AgentEvent& line : *lines) {
        if (line.sign == EventKind::kAgentExited) table.Forget();
        if (line.sign != EventKind::kTask) continue;
        table.Replay(line.event);
        last = std::move(line);
      }
    }
    if (last && last->order != wanted.round) table.Forget();
    table.BeginAgain(Now(), "was lost with its Mesos task" + (last ? " " + last->node : ""));
    place_.emplace(Slot{index, std::move(*file), std::move(table)});
    round_ = wanted.round;
    TakeOrders();
    return true;
  }

  // Gives it up when it is named no more and its task has ended.
  void ReleaseSlot() {
    if (!place_ || child_ || orders_.stop || told_to_end_ || Wanted() != nullptr) return;
    Append(EncodeAgentEvent({EventKind::kAgentExited, {}, round_, TaskId()}));
    place_.reset();
  }

  const AgentTask* Wanted() const {
    for (const AgentTask& task : orders_.tasks) {
      if (task.task.role == role_ && task.task.index == place_->index) return &task;
    }
    return nullptr;
  }

  void TakeOrders() {
    if (!place_ || told_to_end_) return;
    DesiredState mine = orders_;
    std::erase_if(mine.tasks, [&](const AgentTask& task) {
      return task.task.role != role_ || task.task.index != place_->index;
    });
    if (!mine.tasks.empty()) round_ = mine.tasks[0].round;
    place_->table.Take(mine, Now());
  }

  // ---- What happens ----

  void Wait() {
    std::vector<pollfd> polls = {{child_ ? child_->process.pidfd.get() : -1, POLLIN, 0}};
    watch_.Wait(&polls, next_ ? std::optional<Duration>(*next_ - Now()) : std::nullopt);
    if (child_ && polls[0].revents != 0) TakeEnd();
    for (size_t told = watch_.ReadSignals().size(); told > 0; --told) OnToldToEnd();
    if (auto orders = watch_.PollDesiredState(orders_.number)) {
      orders_ = std::move(*orders);
      TakeOrders();
    }
  }

  // Marathon ends this Mesos task. What still runs is made again by another one, should it be
  // wanted. The coordinator would take a SIGTERM for the end of the job.
  void OnToldToEnd() {
    told_to_end_ = true;
    if (role_ == kCoordinator && child_) Signal(child_->life, SIGKILL);
    if (place_) place_->table.StopAll(Now() + std::min(orders_.grace, kMarathonsPatience), true);
  }

  void TakeEnd() {
    int status = -1;
    const Child child = std::move(*child_);
    child_.reset();
    (void)ReadEnd(child.process.pidfd.get(), child.process.pid, child.process.start_ticks, &status);
    if (role_ == kCoordinator) {  // where it was reached it is not any more
      std::error_code ignored;
      fs::remove(job::JobDir(job_dir_).coordinator(), ignored);
    }
    const fs::path log = TaskLogPath(job_dir_, role_, child.life.key.second);
    place_->table.Ended(child.life, Now(), DecodeWaitStatus(status),
                        ReadTail(log, kLogTail).value_or(""));
  }

  // ---- What is due ----

  void Act() {
    next_.reset();
    if (!place_) return;
    const TaskTable::DueActions due = place_->table.Step(Now());
    next_ = due.next;
    for (const Incarnation& life : due.start) Start(life);
    for (const Incarnation& life : due.term) Signal(life, SIGTERM);
    for (const Incarnation& life : due.kill) Signal(life, SIGKILL);
  }

  void Signal(const Incarnation& life, int signal) {
    if (child_ && child_->life == life) (void)SignalProcess(child_->process.pidfd.get(), signal);
  }

  void Start(const Incarnation& life) {
    DesiredTask task = place_->table.Find(life.key)->task;
    if (life.incarnation > 0)
      KillEarlierIncarnations(orders_.job_id, role_, life.key.second, life.incarnation);
    if (task.argv[0] == orders_.program) {
      std::error_code error;
      task.argv[0] = fs::read_symlink("/proc/self/exe", error).string();
    }
    if (role_ == kCoordinator) {
      task.env.emplace("SHOAL_COORDINATOR_HOST", AgentAddress());
      if (const std::string port = Variable("PORT0"); !port.empty())
        task.env.emplace("SHOAL_COORDINATOR_PORT", port);
    }
    std::vector<std::string> env = WithoutMarathon(CurrentEnvironment());
    if (const std::string host = Variable("HOST"); !host.empty())
      env.push_back(std::string(kNodeVariable) + "=" + host);
    if (task.resources.gpu > 0) env.emplace_back("SHOAL_GPUS_GIVEN=1");  // Mesos leases them
    const TaskIdentity place{orders_.job_id, job_dir_, role_, life.key.second, life.incarnation};
    auto process = Spawn(MakeSpawnSpec(place, task, std::move(env)));
    if (!process.ok()) return place_->table.Refused(life, process.status().message());
    child_.emplace(Child{life, std::move(*process)});
    place_->table.Started(life, Now());
  }

  // ---- What is told ----

  static std::string TaskId() { return Variable("MESOS_TASK_ID"); }

  void Write() {
    if (!place_) return;
    std::string text;
    for (TaskEvent& event : place_->table.TakeEvents())
      text += EncodeAgentEvent({EventKind::kTask, std::move(event), round_, TaskId()});
    Append(text);
  }

  void Append(const std::string& text) {
    if (text.empty()) return;
    if (const Status written = WriteAll(place_->file.get(), text); !written.ok())
      LogError("{}: {}", SlotPath(job_dir_, role_, place_->index).string(), written.message());
  }

  const std::string job_dir_;
  const std::string role_;
  DesiredState orders_;
  std::optional<Slot> place_;
  std::optional<Child> child_;
  int64_t round_ = 0;
  std::optional<TimePoint> next_;
  bool told_to_end_ = false;
  DesiredStateWatcher watch_;
};

}  // namespace

Result<int> RunExecutor(const std::string& job_dir, const std::string& role) {
  return Executor(job_dir, role).Run();
}

}  // namespace shoal::engine::marathon
