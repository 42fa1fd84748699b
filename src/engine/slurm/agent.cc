// `shoal slurm agent DIR [AHEAD]`: what the batch script becomes on the first node of the
// allocation, or what runs beside an salloc on the controller's machine (ADR 87). It makes the
// tasks of engine/orders.json exist, as steps (srun) on the nodes that it chooses, and writes to
// engine/events.jsonl what becomes of them. The controller may come and go meanwhile.
//
//   orders.json ─inotify, else each second─▶ TaskTable ─DueActions─▶ StepRunner (srun, pipes) ─▶
//   events.jsonl
//
// One thread. Ends when all is to end and nothing runs; the allocation ends with it.
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
#include "job/execution/job_dir.h"

namespace shoal::engine::slurm {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr const char* kCoordinator = "coordinator";
// Before Slurm kills what it told to end (KillWait is 30 s unless the site says otherwise).
constexpr milliseconds kSlurmsPatience{20'000};

constexpr size_t kLogTail = 4096;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class Agent {
 public:
  Agent(std::string job_dir, std::optional<std::chrono::seconds> ahead)
      : job_dir_(std::move(job_dir)), ahead_(ahead), table_("") {}

  Result<int> Run() {
    TRY(Prepare());
    if (ahead_ && !TakeGrant()) return 1;  // salloc has said why
    TRY(Begin());
    Tell(EventKind::kAgentStarted, "", own_node_);
    while (!Done()) {
      Act();
      Write();
      Wait();
      if (look_at_time_ && Now() >= *look_at_time_) LookAtTime();
    }
    Tell(EventKind::kAgentExited, "");
    // Where salloc would give the allocation back, and is gone.
    if (ahead_ && (!salloc_.valid() || ProcessEnded(salloc_.get())))
      (void)commands_.Cancel(number_);
    return 0;
  }

 private:
  using Incarnation = TaskTable::Incarnation;

  Status Prepare() {
    SetLogName("slurm-agent");
    TRY_ASSIGN(watch_, DesiredStateWatcher::Make(job_dir_, {SIGTERM, SIGINT, SIGUSR1}));
    TRY_ASSIGN(orders_, ReadDesiredState(job_dir_));
    table_ = TaskTable(orders_.job_id);
    return Status::Ok();
  }

  // Of the salloc that was started with us (at_once.cc). What Slurm says to a batch script by its
  // environment is then said to us, too. False: there is none.
  bool TakeGrant() {
    constexpr milliseconds kPatience{10'000};
    const auto grant = AwaitGrant(STDIN_FILENO, kPatience);
    if (!grant.ok()) return false;
    salloc_.Reset(
        static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(grant->salloc), 0)));
    number_ = grant->number;
    ::setenv("SLURM_JOB_ID", std::to_string(number_).c_str(), 1);
    ::setenv("SLURM_JOB_NODELIST", grant->nodes.c_str(), 1);
    ::setenv("SLURM_TASKS_PER_NODE", grant->tasks_per_node.c_str(), 1);
    ::setenv("SLURM_SUBMIT_HOST", grant->submit_host.c_str(), 1);
    return true;
  }

  Status Begin() {
    heterogeneous_ = !ahead_ && !Variable("SLURM_HET_SIZE").empty();
    const int components = heterogeneous_ ? std::atoi(Variable("SLURM_HET_SIZE").c_str()) : 1;
    for (int component = 0; component < components; ++component) TRY(TakeCells(component));
    const std::string here = Variable("SLURMD_NODENAME");
    if (std::find(nodes_.begin(), nodes_.end(), here) != nodes_.end()) own_node_ = here;
    TRY(Continue());
    TRY_ASSIGN(lines_, OpenFile(AgentEventsPath(job_dir_), O_WRONLY | O_CREAT | O_APPEND, 0600));
    if (ahead_) TRY(BeAttended());
    StepCallbacks callbacks;
    callbacks.on_started = [this](const Incarnation& life) { table_.Started(life, Now()); };
    callbacks.on_ended = [this](const Incarnation& life, TaskEnd end, const std::string& words) {
      OnEnded(life, std::move(end), words);
    };
    callbacks.on_refused = [this](const Incarnation& life, const std::string& reason) {
      Release(life);
      table_.Refused(life, reason);
    };
    callbacks.on_step_ended = [this](const Incarnation& life) {
      const auto held = held_.find(life);
      if (held == held_.end()) return;
      placement_.LetGo(held->second, life.key.first);
      held_.erase(held);
    };
    callbacks.on_nodes_failed = [this](const std::string& list) { OnNodesFailed(list); };
    launcher_ = FindStaticTwin(orders_.program);
    steps_ = std::make_unique<StepRunner>(launcher_, SrunEnvironment(), std::move(callbacks));
    table_.Take(orders_, Now());
    if (orders_.stop) closing_ = true;
    return Status::Ok();
  }

  // As Slurm says them to the batch script.
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

  // Nobody signals that the time is nearly over.
  Status BeAttended() {
    constexpr std::chrono::seconds kFirstLook{2};
    look_at_time_ = Now() + kFirstLook;
    TRY(WriteAllocation(job_dir_, {number_, true}));
    return TellEngine();
  }

  // It waits for that.
  Status TellEngine() const {
    TRY(WriteAll(STDOUT_FILENO, std::to_string(number_) + "\n"));
    TRY_ASSIGN(const UniqueFd nothing, OpenFile("/dev/null", O_WRONLY));
    ::dup2(nothing.get(), STDOUT_FILENO);
    return Status::Ok();
  }

  // It can be changed while the job runs.
  void LookAtTime() {
    constexpr std::chrono::seconds kAgain{60};
    look_at_time_ = Now() + kAgain;
    const auto left = commands_.TimeLeft(number_);
    if (!left.ok()) return LogInfo("{}", left.status().message());
    if (!*left) return;
    if (**left <= *ahead_) return OnTimeLimit();
    look_at_time_ = std::min(*look_at_time_, Now() + (**left - *ahead_));
  }

  // What an earlier agent of this job left, before Slurm put the job into its queue again.
  Status Continue() {
    AgentEventReader reader(AgentEventsPath(job_dir_));
    bool before = false;
    for (;;) {
      TRY_ASSIGN(const std::vector<AgentEvent> lines, reader.Read());
      if (lines.empty()) break;
      before = true;
      for (const AgentEvent& line : lines) {
        if (line.sign == EventKind::kTask) table_.Replay(line.event);
        if (line.sign == EventKind::kRequeue) table_.Forget();
      }
    }
    if (!before) return Status::Ok();
    std::error_code ignored;
    fs::remove(job::JobDir(job_dir_).coordinator(), ignored);
    table_.BeginAgain(Now(), "was lost with its allocation; Slurm has started the job again");
    return Status::Ok();
  }

  static TimePoint Now() { return RealClock::Get()->Now(); }
  bool Done() const { return closing_ && !table_.AnyAlive() && steps_->empty() && !saving_; }

  // ---- What happens ----

  void Wait() {
    std::vector<pollfd> polls = {{ahead_ && !revoked_ ? STDIN_FILENO : -1, POLLIN, 0}};
    steps_->AddPolls(&polls);
    std::optional<TimePoint> next = next_;
    if (look_at_time_) next = std::min(next.value_or(*look_at_time_), *look_at_time_);
    watch_.Wait(&polls, next ? std::optional<Duration>(*next - Now()) : std::nullopt);
    for (const int signal : watch_.ReadSignals()) OnSignal(signal);
    if (polls[0].revents != 0) OnRevoked();
    if (auto orders = watch_.PollDesiredState(orders_.number)) {
      orders_ = std::move(*orders);
      table_.Take(orders_, Now());
      if (orders_.stop) closing_ = true;
    }
    steps_->Handle();
  }

  void OnSignal(int signal) {
    if (signal == SIGUSR1) return OnTimeLimit();
    // Slurm ends the allocation. The coordinator must not take that for its tasks' own ends.
    LogWarning("Slurm ends the allocation");
    EndForAnother();
  }

  // Nobody writes there: Slurm has ended the allocation, and salloc its command.
  void OnRevoked() {
    revoked_ = true;
    OnSignal(SIGTERM);
  }

  // Everything ends, to be started again by another agent, should there be one.
  void EndForAnother() {
    for (const auto& [life, cell] : cells_) {
      if (life.key.first == kCoordinator) steps_->Signal(life, SIGKILL);
    }
    closing_ = true;
    saving_ = false;
    table_.StopAll(Now() + kSlurmsPatience, true);
  }

  // The coordinator lets all tasks save and end, and ends as suspended.
  void OnTimeLimit() {
    if (closing_ || saving_) return;
    Tell(EventKind::kTimeLimit, "the time of its allocation is nearly over");
    saving_ = orders_.requeue;
    for (const auto& [life, cell] : cells_) {
      if (life.key.first == kCoordinator) steps_->Signal(life, orders_.requeue ? SIGUSR1 : SIGUSR2);
    }
  }

  void OnEnded(const Incarnation& life, TaskEnd end, const std::string& words) {
    Release(life);
    const bool coordinator = life.key.first == kCoordinator;
    if (coordinator) {  // where it was reached it is not any more
      std::error_code ignored;
      fs::remove(job::JobDir(job_dir_).coordinator(), ignored);
    }
    const bool decided = coordinator && !IsLoss(end);
    const bool saved = decided && saving_;
    const fs::path log = TaskLogPath(job_dir_, life.key.first, life.key.second);
    table_.Ended(life, Now(), std::move(end),
                 words.empty() ? ReadTail(log, kLogTail).value_or("") : words);
    if (saved) return Requeue();
    // The job is over. A controller would say so, but there need not be one.
    if (decided && fs::exists(job::JobDir(job_dir_).verdict())) {
      closing_ = true;
      table_.StopAll(Now() + orders_.grace, false);
    }
  }

  void Requeue() {
    saving_ = false;
    closing_ = true;
    table_.StopAll(Now() + kSlurmsPatience, true);
    CountResume();
    Tell(EventKind::kRequeue, "its tasks have saved");
    AskRequeue();
  }

  void AskRequeue() {
    Tell(EventKind::kNeedsNewAllocation, "");
    if (ahead_) return;  // whoever ordered the job submits it when we have ended
    auto ran = RunCommand({"scontrol", "requeue", Variable("SLURM_JOB_ID")}, CurrentEnvironment());
    if (!ran.ok() || ran->exit_code != 0)
      LogError("scontrol requeue: {}", ran.ok() ? ran->err : ran.status().message());
  }

  // The next coordinator is to go on from the suspension (rendezvous/bootstrap/job_files.h).
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

  // ---- What is due ----

  void Act() {
    TaskTable::DueActions due = table_.Step(Now());
    next_ = due.next;
    for (const Incarnation& life : due.term) steps_->Signal(life, SIGTERM);
    for (const Incarnation& life : due.kill) steps_->Signal(life, SIGKILL);
    // sruns take their time: the coordinator is there before their tasks are.
    std::stable_partition(due.start.begin(), due.start.end(),
                          [](const Incarnation& life) { return life.key.first != kCoordinator; });
    while (!due.start.empty()) StartSome(&due.start);
  }

  // The first of them with all others of its role that go the same way: one step. A task with GPUs
  // has a step of its own, whose devices are free again at its end. Big roles come before small
  // ones, as the engine orders them.
  void StartSome(std::vector<Incarnation>* lives) {
    const std::string role = lives->front().key.first;
    StepSpec spec;
    std::string nodes;
    bool overlap = false;
    std::erase_if(*lives, [&](const Incarnation& life) {
      const bool alone = table_.Find(life.key)->task.resources.gpu > 0;
      if (life.key.first != role || (alone && !spec.lives.empty())) return false;
      bool fresh = true;
      if (!Place(life, &fresh)) return true;
      if (!spec.lives.empty() && overlap == fresh) {
        UndoPlace(life);
        return false;
      }
      overlap = !fresh;
      if (role != kCoordinator) nodes += placement_.node(cells_.at(life)) + "\n";
      spec.lives.push_back(life);
      return true;
    });
    if (!spec.lives.empty()) StartStep(std::move(spec), nodes, overlap);
  }

  void StartStep(StepSpec spec, const std::string& nodes, bool overlap) {
    const fs::path base = EngineDir(job_dir_) / ("step-" + std::to_string(step_number_++));
    spec.file = base.string() + ".json";
    Status written =
        WriteFileAtomically(spec.file, EncodeRecords(RecordsOf(spec.lives)), 0600, false);
    if (!nodes.empty()) {
      if (written.ok()) written = WriteFileAtomically(base.string() + ".nodes", nodes, 0600, false);
      const AgentTask& first = *table_.Find(spec.lives[0].key);
      spec.words = StepArgv(first.task.resources, spec.lives.size(), base.string() + ".nodes",
                            overlap, heterogeneous_ ? HetGroupOption(first.component) : "");
    }
    if (ahead_) spec.number = std::to_string(number_);
    if (written.ok()) return steps_->Start(spec);
    for (const Incarnation& life : spec.lives) {
      Release(life);
      table_.Refused(life, written.message());
    }
  }

  // False if it is refused, or waits for another allocation. `fresh`: what it gets is held by no
  // step. A task without GPUs and memory may share what is full.
  bool Place(const Incarnation& life, bool* fresh) {
    if (life.key.first == kCoordinator) {
      cells_[life] = kNoCell;
      return true;
    }
    const AgentTask& ordered = *table_.Find(life.key);
    const job::Resources& resources = ordered.task.resources;
    const std::vector<std::string>& avoided = ordered.task.excluded_hosts;
    const auto taken = placement_.Take(
        life.key.first, {ordered.per_cell, ordered.beside, ordered.component}, avoided);
    *fresh = taken && (taken->fresh || resources.gpu > 0);
    if (taken) {
      cells_[life] = taken->cell;
      if (taken->fresh) held_[life] = taken->cell;
      return true;
    }
    if (resources.gpu == 0 && resources.memory_bytes == 0) {
      if (const auto cell = placement_.TakeAnyway(life.key.first, ordered.component, avoided)) {
        cells_[life] = *cell;
        return true;
      }
    }
    if (lost_node_ && orders_.requeue) {
      RequeueForRoom();
      return false;
    }
    if (!avoided.empty()) {
      table_.Refused(life,
                     "the allocation has no room for it on its other nodes: Slurm gives a job "
                     "what it asks for at its start; let the role's `max` say how many "
                     "tasks there may be, one host's more than its replicas");
      return false;
    }
    table_.Refused(life,
                   "the allocation has no room for it: Slurm gives a job what it asks for at its "
                   "start; let the role's `max` say how many tasks there may be");
    return false;
  }

  void UndoPlace(const Incarnation& life) {
    Release(life);
    if (const auto held = held_.find(life); held != held_.end()) {
      placement_.LetGo(held->second, life.key.first);
      held_.erase(held);
    }
  }

  // A node is gone and what was on it fits nowhere: another allocation has to come.
  void RequeueForRoom() {
    if (closing_) return;
    Tell(EventKind::kNote, "the nodes that are left have no room for what was lost");
    EndForAnother();
    AskRequeue();
  }

  void Release(const Incarnation& life) {
    const auto found = cells_.find(life);
    if (found == cells_.end()) return;
    if (found->second != kNoCell) placement_.Release(found->second, life.key.first);
    cells_.erase(found);
  }

  JobRecords RecordsOf(const std::vector<Incarnation>& lives) {
    if (lives[0].key.first == kCoordinator && address_.empty()) address_ = NodeAddress(nodes_);
    JobRecords records;
    records.job_id = orders_.job_id;
    for (const Incarnation& life : lives) {
      TaskRecord record;
      record.desired = table_.Find(life.key)->task;
      record.incarnation = life.incarnation;
      if (life.key.first != kCoordinator && record.desired.argv[0] == orders_.program)
        record.desired.argv[0] = launcher_;
      if (life.key.first == kCoordinator) {
        record.desired.env.emplace("SHOAL_COORDINATOR_HOST", address_);
        record.desired.env.emplace("SHOAL_BATCH", "1");
        if (ahead_) TakeOpenPort(&record.desired);
      }
      records.tasks.push_back(std::move(record));
    }
    return records;
  }

  // A firewall of the login node lets the nodes reach the ports of its sruns, and perhaps no
  // others.
  void TakeOpenPort(DesiredTask* coordinator) const {
    const auto range = commands_.SrunPorts();
    if (!range.ok()) return LogInfo("{}", range.status().message());
    if (range->first == 0) return;
    std::random_device any;
    std::uniform_int_distribution<int> port(range->first, range->last);
    coordinator->env.emplace("SHOAL_COORDINATOR_PORT", std::to_string(port(any)));
  }

  // ---- What is told ----

  void Write() {
    std::string text;
    for (TaskEvent& event : table_.TakeEvents()) {
      std::string node = NodeOf(event);
      text +=
          EncodeAgentEvent({EventKind::kTask, std::move(event), orders_.number, std::move(node)});
    }
    Append(text);
  }

  std::string NodeOf(const TaskEvent& event) const {
    const auto found = cells_.find({{event.role, event.index}, event.incarnation});
    if (event.phase != TaskPhase::kRunning || found == cells_.end()) return "";
    return found->second == kNoCell ? Variable("SLURMD_NODENAME") : placement_.node(found->second);
  }

  void Tell(EventKind sign, const std::string& reason, const std::string& node = "") {
    Write();
    AgentEvent line{sign, {}, orders_.number, node};
    line.event.end.reason = reason;
    Append(EncodeAgentEvent(line));
  }

  void Append(const std::string& text) {
    if (text.empty()) return;
    if (const Status written = WriteAll(lines_.get(), text); !written.ok())
      LogError("{}: {}", AgentEventsPath(job_dir_).string(), written.message());
  }

  // srun takes from its environment what it is not told: it is to ask for nothing but its words.
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
  // On the controller's machine: so long before the end of the allocation's time the tasks save.
  const std::optional<std::chrono::seconds> ahead_;
  const SlurmCommands commands_{CurrentEnvironment()};
  int64_t number_ = 0;  // of the allocation, with ahead_
  UniqueFd salloc_;     // a pidfd, with ahead_
  bool revoked_ = false;
  bool heterogeneous_ = false;
  std::optional<TimePoint> look_at_time_;
  std::vector<std::string> nodes_;
  DesiredState orders_;
  CellPlacement placement_;
  std::string own_node_;  // empty if it is none of the allocation's: a front end
  TaskTable table_;
  std::string address_;
  std::string launcher_;  // what steps run, and launchers are
  std::unique_ptr<StepRunner> steps_;
  std::map<Incarnation, size_t> cells_;  // of what is started
  std::map<Incarnation, size_t> held_;   // … by a step that is not over
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
