// `shoal slurm agent DIR [AHEAD]`: the program that the batch script executes on the first node of
// the allocation, or that runs beside salloc on the controller's machine (ADR 87). It starts the
// tasks of engine/orders.json as steps (srun) on nodes that it chooses, and logs their changes to
// engine/events.jsonl. It does not need the controller to be present.
//
//   orders.json ─inotify, else each second─▶ TaskTable ─DueActions─▶ StepRunner (srun, pipes) ─▶
//   events.jsonl
//
// Single-threaded. Exits when the desired state is empty and no task runs; the allocation ends with
// it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/agent/desired_state_watcher.h"
#include "engine/agent/task_table.h"
#include "engine/local/job_records.h"
#include "engine/process/spawn.h"
#include "engine/slurm/batch_script.h"
#include "engine/slurm/cell_placement.h"
#include "engine/slurm/grant.h"
#include "engine/slurm/node_address.h"
#include "engine/slurm/slurm_commands.h"
#include "engine/slurm/slurm_helper.h"
#include "engine/slurm/step_runner.h"
#include "engine/tasks/job_files.h"
#include "host/files/disk_retry.h"
#include "job/execution/job_dir.h"

namespace shoal::engine::slurm {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Less than KillWait (30 s by default), after which Slurm sends SIGKILL.
constexpr milliseconds kSlurmsPatience{20'000};

constexpr size_t kLogTail = 4096;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Run prepares, then repeats: start and signal due tasks (Act), log events (Write), wait for
// signals, a new desired state or output of steps (Wait). Tasks are placed in cells of the
// allocation and started by steps. Single-threaded.
class Agent {
 public:
  Agent(std::string job_dir, std::optional<std::chrono::seconds> ahead)
      : job_dir_(std::move(job_dir)), table_("") {
    if (ahead) salloc_.emplace(Salloc{*ahead, 0, {}});
  }

  Result<int> Run() {
    TRY(Prepare());
    if (salloc_ && !ReadGrant()) return 1;  // salloc has printed the reason
    TRY(Begin());
    LogEvent(EventKind::kAgentStarted, "", own_node_);
    while (!Done()) {
      Act();
      Write();
      Wait();
      if (look_at_time_ && Now() >= *look_at_time_) LookAtTime();
    }
    LogEvent(EventKind::kAgentExited, "");
    // salloc would release the allocation, but it is gone.
    if (salloc_ && (!salloc_->pidfd.valid() || ProcessEnded(salloc_->pidfd.get())))
      (void)commands_.Cancel(salloc_->number);
    return 0;
  }

 private:
  using Incarnation = TaskTable::Incarnation;
  // Set if the agent runs on the controller's machine, beside the salloc that holds its allocation.
  struct Salloc {
    std::chrono::seconds ahead{};  // the tasks save this long before the time limit
    int64_t number = 0;            // Slurm's job id
    UniqueFd pidfd;
  };

  Status Prepare() {
    SetLogName("slurm-agent");
    TRY_ASSIGN(watch_, DesiredStateWatcher::Make(job_dir_, {SIGTERM, SIGINT, SIGUSR1}));
    TRY_ASSIGN(desired_state_, ReadDesiredState(job_dir_));
    table_ = TaskTable(desired_state_.job_id);
    return Status::Ok();
  }

  // Reads the grant of the salloc that was started with this agent (immediate_allocation.cc) and
  // sets the environment variables that Slurm sets for a batch script. False if there is no grant.
  bool ReadGrant() {
    constexpr milliseconds kPatience{10'000};
    const auto grant = AwaitGrant(STDIN_FILENO, kPatience);
    if (!grant.ok()) return false;
    salloc_->pidfd.Reset(
        static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(grant->salloc), 0)));
    salloc_->number = grant->number;
    ::setenv("SLURM_JOB_ID", std::to_string(salloc_->number).c_str(), 1);
    ::setenv("SLURM_JOB_NODELIST", grant->nodes.c_str(), 1);
    ::setenv("SLURM_TASKS_PER_NODE", grant->tasks_per_node.c_str(), 1);
    ::setenv("SLURM_SUBMIT_HOST", grant->submit_host.c_str(), 1);
    return true;
  }

  Status Begin() {
    heterogeneous_ = !salloc_ && !Variable("SLURM_HET_SIZE").empty();
    const int components = heterogeneous_ ? std::atoi(Variable("SLURM_HET_SIZE").c_str()) : 1;
    for (int component = 0; component < components; ++component) TRY(TakeCells(component));
    const std::string here = Variable("SLURMD_NODENAME");
    if (std::find(nodes_.begin(), nodes_.end(), here) != nodes_.end()) own_node_ = here;
    TRY(Continue());
    TRY_ASSIGN(lines_, OpenFile(AgentEventsPath(job_dir_), O_WRONLY | O_CREAT | O_APPEND, 0600));
    if (salloc_) TRY(BeAttended());
    StepCallbacks callbacks;
    callbacks.on_started = [this](const Incarnation& life) { table_.OnStarted(life, Now()); };
    callbacks.on_ended = [this](const Incarnation& life, TaskEnd end, const std::string& words) {
      OnEnded(life, std::move(end), words);
    };
    callbacks.on_refused = [this](const Incarnation& life, const std::string& reason) {
      Release(life);
      table_.OnRefused(life, reason);
    };
    callbacks.on_step_ended = [this](const Incarnation& life) {
      const auto held = held_.find(life);
      if (held == held_.end()) return;
      placement_.ReleaseStep(held->second, life.key.first);
      held_.erase(held);
    };
    callbacks.on_nodes_failed = [this](const std::string& list) { OnNodesFailed(list); };
    launcher_ = FindStaticTwin(desired_state_.program);
    steps_ = std::make_unique<StepRunner>(launcher_, SrunEnvironment(), std::move(callbacks));
    table_.ApplyDesiredState(desired_state_, Now());
    if (desired_state_.stop) closing_ = true;
    return Status::Ok();
  }

  // Sets the variables that Slurm sets for a batch script.
  Status TakeCells(int component) {
    const std::string group = heterogeneous_ ? "_HET_GROUP_" + std::to_string(component) : "";
    TRY_ASSIGN(const std::vector<std::string> nodes,
               ExpandHosts(Variable(("SLURM_JOB_NODELIST" + group).c_str())));
    TRY_ASSIGN(const std::vector<int> cells,
               ExpandCounts(Variable(("SLURM_TASKS_PER_NODE" + group).c_str())));
    placement_.Add(component, nodes, cells);
    nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
    return Status::Ok();
  }

  // Slurm sends no signal before the time limit to an agent outside of the allocation.
  Status BeAttended() {
    constexpr std::chrono::seconds kFirstLook{2};
    look_at_time_ = Now() + kFirstLook;
    TRY(WriteAllocation(job_dir_, {salloc_->number, true}));
    return TellEngine();
  }

  // Waits until the job is cancelled.
  Status TellEngine() const {
    TRY(WriteAll(STDOUT_FILENO, std::to_string(salloc_->number) + "\n"));
    TRY_ASSIGN(const UniqueFd nothing, OpenFile("/dev/null", O_WRONLY));
    ::dup2(nothing.get(), STDOUT_FILENO);
    return Status::Ok();
  }

  // An administrator may change the time limit while the job runs.
  void LookAtTime() {
    constexpr std::chrono::seconds kAgain{60};
    look_at_time_ = Now() + kAgain;
    const auto left = commands_.TimeLeft(salloc_->number);
    if (!left.ok()) return LogInfo("{}", left.status().message());
    if (!*left) return;
    if (**left <= salloc_->ahead) return OnTimeLimit();
    look_at_time_ = std::min(*look_at_time_, Now() + (**left - salloc_->ahead));
  }

  // Reads the event log of an earlier agent, from before Slurm requeued the job.
  Status Continue() {
    AgentEventReader reader(AgentEventsPath(job_dir_));
    bool before = false;
    for (;;) {
      TRY_ASSIGN(const std::vector<AgentEvent> lines, reader.Read());
      if (lines.empty()) break;
      before = true;
      for (const AgentEvent& line : lines) {
        if (line.kind == EventKind::kTask) table_.Replay(line.event);
        if (line.kind == EventKind::kRequeue) table_.Reset();
      }
    }
    if (!before) return Status::Ok();
    std::error_code ignored;
    fs::remove(job::JobDir(job_dir_).coordinator(), ignored);
    table_.MarkRunningLost(Now(), "was lost with its allocation; Slurm has started the job again");
    return Status::Ok();
  }

  static TimePoint Now() { return RealClock::Get()->Now(); }
  bool Done() const { return closing_ && !table_.AnyAlive() && steps_->empty() && !saving_; }

  // ---- Input ----

  void Wait() {
    std::vector<pollfd> polls = {{salloc_ && !revoked_ ? STDIN_FILENO : -1, POLLIN, 0}};
    steps_->AddPolls(&polls);
    std::optional<TimePoint> next = next_;
    if (look_at_time_) next = std::min(next.value_or(*look_at_time_), *look_at_time_);
    watch_.Wait(&polls, next ? std::optional<Duration>(*next - Now()) : std::nullopt);
    for (const int signal : watch_.ReadSignals()) OnSignal(signal);
    if (polls[0].revents != 0) OnRevoked();
    if (auto orders = watch_.PollDesiredState(desired_state_.revision)) {
      desired_state_ = std::move(*orders);
      table_.ApplyDesiredState(desired_state_, Now());
      if (desired_state_.stop) closing_ = true;
    }
    steps_->Handle();
  }

  void OnSignal(int signal) {
    if (signal == SIGUSR1) return OnTimeLimit();
    // Slurm ends the allocation. The coordinator must not see its tasks' ends as failures.
    LogWarning("Slurm ends the allocation");
    EndForAnother();
  }

  // The socket to salloc's command closed: Slurm has ended the allocation.
  void OnRevoked() {
    revoked_ = true;
    OnSignal(SIGTERM);
  }

  // Ends all tasks as losses, so that another agent starts them again.
  void EndForAnother() {
    for (const auto& [life, cell] : cells_) {
      if (IsCoordinator(life.key.first)) steps_->Signal(life, SIGKILL);
    }
    closing_ = true;
    saving_ = false;
    table_.StopAll(Now() + kSlurmsPatience, true);
  }

  // Makes the coordinator save and suspend the job.
  void OnTimeLimit() {
    if (closing_ || saving_) return;
    LogEvent(EventKind::kTimeLimit, "the time of its allocation is nearly over");
    saving_ = desired_state_.requeue;
    for (const auto& [life, cell] : cells_) {
      if (IsCoordinator(life.key.first))
        steps_->Signal(life, desired_state_.requeue ? SIGUSR1 : SIGUSR2);
    }
  }

  void OnEnded(const Incarnation& life, TaskEnd end, const std::string& words) {
    Release(life);
    const bool coordinator = IsCoordinator(life.key.first);
    if (coordinator) {  // its published address is no longer valid
      std::error_code ignored;
      fs::remove(job::JobDir(job_dir_).coordinator(), ignored);
    }
    const bool decided = coordinator && !IsLoss(end);
    const bool saved = decided && saving_;
    const fs::path log = TaskLogPath(job_dir_, life.key.first, life.key.second);
    table_.OnEnded(life, Now(), std::move(end),
                   words.empty() ? ReadTail(log, kLogTail).value_or("") : words);
    if (saved) return Requeue();
    // The job is over. Do not wait for the controller to say so: it may be absent.
    if (decided && fs::exists(job::JobDir(job_dir_).verdict())) {
      closing_ = true;
      table_.StopAll(Now() + desired_state_.grace, false);
    }
  }

  void Requeue() {
    saving_ = false;
    closing_ = true;
    table_.StopAll(Now() + kSlurmsPatience, true);
    CountResume();
    LogEvent(EventKind::kRequeue, "its tasks have saved");
    AskRequeue();
  }

  void AskRequeue() {
    LogEvent(EventKind::kNeedsNewAllocation, "");
    if (salloc_) return;  // the engine submits the job again when this agent has exited
    auto ran = RunCommand({"scontrol", "requeue", Variable("SLURM_JOB_ID")}, CurrentEnvironment());
    if (!ran.ok() || ran->exit_code != 0)
      LogError("scontrol requeue: {}", ran.ok() ? ran->err : ran.status().message());
  }

  // Tells the next coordinator to resume from the suspension (rendezvous/bootstrap/job_files.h).
  void CountResume() {
    const fs::path path = job::JobDir(job_dir_).resumes();
    const int resumes = std::atoi(ReadFile(path, 64).value_or("0").c_str());
    std::error_code ignored;
    fs::remove(job::JobDir(job_dir_).verdict(), ignored);
    (void)WriteFileAtomically(path, std::to_string(resumes + 1) + "\n", 0600, true);
  }

  void OnNodesFailed(const std::string& list) {
    const auto nodes = ExpandHosts(list);
    if (!nodes.ok()) return LogWarning("{}", nodes.status().message());
    lost_node_ = true;
    for (const std::string& node : *nodes) placement_.LoseNode(node);
    const std::map<Incarnation, size_t> held = cells_;
    for (const auto& [life, cell] : held) {
      if (cell == kNoCell || !placement_.lost(cell)) continue;
      TaskEnd end;
      end.reason = "was lost with its node " + placement_.node(cell);
      OnEnded(life, std::move(end), end.reason);
    }
  }

  // ---- Actions ----

  void Act() {
    TaskTable::DueActions due = table_.Step(Now());
    next_ = due.next;
    for (const Incarnation& life : due.term) steps_->Signal(life, SIGTERM);
    for (const Incarnation& life : due.kill) steps_->Signal(life, SIGKILL);
    // The coordinator starts first: srun takes longer.
    std::stable_partition(due.start.begin(), due.start.end(),
                          [](const Incarnation& life) { return !IsCoordinator(life.key.first); });
    while (!due.start.empty()) StartSome(&due.start);
  }

  // Starts the first task together with all others of its role that can share a step with it. A
  // task with GPUs gets a step of its own, so that its devices are free when it ends. Large roles
  // are placed before small ones, in the engine's order.
  void StartSome(std::vector<Incarnation>* incarnations) {
    const std::string role = incarnations->front().key.first;
    StepSpec spec;
    std::string nodes;
    bool overlap = false;
    std::erase_if(*incarnations, [&](const Incarnation& life) {
      const bool alone = table_.Find(life.key)->task.resources.gpu > 0;
      if (life.key.first != role || (alone && !spec.incarnations.empty())) return false;
      bool fresh = true;
      if (!Place(life, &fresh)) return true;
      if (!spec.incarnations.empty() && overlap == fresh) {
        UndoPlace(life);
        return false;
      }
      overlap = !fresh;
      if (!IsCoordinator(role)) nodes += placement_.node(cells_.at(life)) + "\n";
      spec.incarnations.push_back(life);
      return true;
    });
    if (!spec.incarnations.empty()) StartStep(std::move(spec), nodes, overlap);
  }

  // As WriteFileAtomically. Tries again, for 10 s, while the disk is full or fails (ADR 141).
  static Status WriteStepFile(const std::string& path, const std::string& text) {
    const auto patience = [](const Status& error) {
      return std::min<Duration>(host::DiskErrorTimeout(error), std::chrono::seconds(10));
    };
    return host::RetryOnDiskError([&] { return WriteFileAtomically(path, text, 0600, false); },
                                  patience);
  }

  void StartStep(StepSpec spec, const std::string& nodes, bool overlap) {
    const fs::path base = EngineDir(job_dir_) / ("step-" + std::to_string(step_number_++));
    spec.file = base.string() + ".json";
    Status written = WriteStepFile(spec.file, EncodeRecords(RecordsOf(spec.incarnations)));
    if (!nodes.empty()) {
      if (written.ok()) written = WriteStepFile(base.string() + ".nodes", nodes);
      const AgentTask& first = *table_.Find(spec.incarnations[0].key);
      spec.words =
          StepArgv(first.task.resources, spec.incarnations.size(), base.string() + ".nodes",
                   overlap, heterogeneous_ ? HetGroupOption(first.component) : "");
    }
    if (salloc_) spec.number = std::to_string(salloc_->number);
    if (written.ok()) return steps_->Start(spec);
    for (const Incarnation& life : spec.incarnations) {
      Release(life);
      table_.OnRefused(life, written.message());
    }
  }

  // Reserves a cell. False if the task is refused or waits for another allocation. `fresh`: no step
  // holds the cell. A task without GPUs and memory request may use a full cell.
  bool Place(const Incarnation& life, bool* fresh) {
    if (IsCoordinator(life.key.first)) {
      cells_[life] = kNoCell;
      return true;
    }
    const AgentTask& ordered = *table_.Find(life.key);
    const job::Resources& resources = ordered.task.resources;
    const std::vector<std::string>& avoided = ordered.task.excluded_hosts;
    const auto taken = placement_.Reserve(
        life.key.first, {ordered.per_cell, ordered.beside, ordered.component}, avoided);
    *fresh = taken && (taken->fresh || resources.gpu > 0);
    if (taken) {
      cells_[life] = taken->cell;
      if (taken->fresh) held_[life] = taken->cell;
      return true;
    }
    if (resources.gpu == 0 && resources.memory_bytes == 0) {
      if (const auto cell =
              placement_.ReserveLeastUsed(life.key.first, ordered.component, avoided)) {
        cells_[life] = *cell;
        return true;
      }
    }
    if (lost_node_ && desired_state_.requeue) {
      RequeueForRoom();
      return false;
    }
    if (!avoided.empty()) {
      table_.OnRefused(life,
                       "the allocation has no room for it on its other nodes: Slurm gives a job "
                       "what it asks for at its start; let the role's `max` say how many "
                       "tasks there may be, one host's more than its replicas");
      return false;
    }
    table_.OnRefused(life,
                     "the allocation has no room for it: Slurm gives a job what it asks for at its "
                     "start; let the role's `max` say how many tasks there may be");
    return false;
  }

  void UndoPlace(const Incarnation& life) {
    Release(life);
    if (const auto held = held_.find(life); held != held_.end()) {
      placement_.ReleaseStep(held->second, life.key.first);
      held_.erase(held);
    }
  }

  // A node failed and its tasks fit nowhere else: the job needs another allocation.
  void RequeueForRoom() {
    if (closing_) return;
    LogEvent(EventKind::kNote, "the remaining nodes have no room for the lost tasks");
    EndForAnother();
    AskRequeue();
  }

  void Release(const Incarnation& life) {
    const auto found = cells_.find(life);
    if (found == cells_.end()) return;
    if (found->second != kNoCell) placement_.Release(found->second, life.key.first);
    cells_.erase(found);
  }

  JobRecords RecordsOf(const std::vector<Incarnation>& incarnations) {
    if (IsCoordinator(incarnations[0].key.first) && address_.empty())
      address_ = NodeAddress(nodes_);
    JobRecords records;
    records.job_id = desired_state_.job_id;
    for (const Incarnation& life : incarnations) {
      TaskRecord record;
      record.desired = table_.Find(life.key)->task;
      record.incarnation = life.incarnation;
      if (!IsCoordinator(life.key.first) && record.desired.argv[0] == desired_state_.program)
        record.desired.argv[0] = launcher_;
      if (IsCoordinator(life.key.first)) {
        record.desired.env.emplace("SHOAL_COORDINATOR_HOST", address_);
        record.desired.env.emplace("SHOAL_BATCH", "1");
        if (salloc_) TakeOpenPort(&record.desired);
      }
      records.tasks.push_back(std::move(record));
    }
    return records;
  }

  // Chooses the coordinator's port among srun's ports: a firewall of the login node may leave only
  // those reachable.
  void TakeOpenPort(DesiredTask* coordinator) const {
    const auto range = commands_.SrunPorts();
    if (!range.ok()) return LogInfo("{}", range.status().message());
    if (range->first == 0) return;
    std::random_device any;
    std::uniform_int_distribution<int> port(range->first, range->last);
    coordinator->env.emplace("SHOAL_COORDINATOR_PORT", std::to_string(port(any)));
  }

  // ---- Event log ----

  void Write() {
    std::string text;
    for (TaskEvent& event : table_.DrainEvents()) {
      std::string node = NodeOf(event);
      text += EncodeAgentEvent(
          {EventKind::kTask, std::move(event), desired_state_.revision, std::move(node)});
    }
    Append(text);
  }

  std::string NodeOf(const TaskEvent& event) const {
    const auto found = cells_.find({{event.role, event.index}, event.incarnation});
    if (event.phase != TaskPhase::kRunning || found == cells_.end()) return "";
    return found->second == kNoCell ? Variable("SLURMD_NODENAME") : placement_.node(found->second);
  }

  void LogEvent(EventKind sign, const std::string& reason, const std::string& node = "") {
    Write();
    AgentEvent line{sign, {}, desired_state_.revision, node};
    line.event.end.reason = reason;
    Append(EncodeAgentEvent(line));
  }

  void Append(const std::string& text) {
    if (text.empty()) return;
    if (const Status written = WriteAll(lines_.get(), text); !written.ok())
      LogError("{}: {}", AgentEventsPath(job_dir_).string(), written.message());
  }

  // srun reads defaults from its environment: remove them, so that only its arguments count.
  static std::vector<std::string> SrunEnvironment() {
    std::vector<std::string> env = WithoutSlurm(CurrentEnvironment());
    for (const char* name : {"SLURM_CONF", "SLURM_JOB_ID", "SLURM_JOBID"}) {
      if (const std::string value = Variable(name); !value.empty())
        env.push_back(std::string(name) + "=" + value);
    }
    return env;
  }

  static constexpr size_t kNoCell = static_cast<size_t>(-1);

  const std::string job_dir_;
  const SlurmCommands commands_{CurrentEnvironment()};
  std::optional<Salloc> salloc_;
  bool revoked_ = false;
  bool heterogeneous_ = false;
  std::optional<TimePoint> look_at_time_;
  std::vector<std::string> nodes_;
  DesiredState desired_state_;
  CellPlacement placement_;
  std::string own_node_;  // empty on a front end outside of the allocation
  TaskTable table_;
  std::string address_;
  std::string launcher_;  // program of steps and launchers
  std::unique_ptr<StepRunner> steps_;
  std::map<Incarnation, size_t> cells_;  // cells of started tasks
  std::map<Incarnation, size_t> held_;   // cells held by running steps
  DesiredStateWatcher watch_;
  UniqueFd lines_;
  std::optional<TimePoint> next_;
  int step_number_ = 0;
  bool closing_ = false;
  bool saving_ = false;
  bool lost_node_ = false;
};

}  // namespace

Result<int> RunAgent(const std::string& job_dir, std::optional<std::chrono::seconds> ahead) {
  return Agent(job_dir, ahead).Run();
}

}  // namespace shoal::engine::slurm
