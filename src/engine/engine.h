// The interface of an engine: it makes the tasks of a job exist, watches, stops and reaches them.
// Rules about roles, success and restarts of programs are in rendezvous, so they are the same on
// every engine.
//
// One folder per implementation: local/, docker/, kubernetes/, slurm/, marathon/, and fake/ (the
// reference for tests). tests/contract runs one suite over all of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "engine/executes.h"
#include "engine/placeholders.h"
#include "engine/task_kind.h"
#include "job/spec/job.h"

namespace shoal::engine {

using job::kNodeVariable;

// One process tree that an engine must make exist: a launcher, or the job's coordinator. Plain
// value.
struct DesiredTask {
  std::string role;
  int index = 0;
  // argv[0] is an absolute path or is looked up in PATH. Arguments and values of variables may
  // contain placeholders (placeholders.h).
  std::vector<std::string> argv;
  std::map<std::string, std::string>
      env;               // added to a clean, small environment (PATH, HOME, LANG, TMPDIR …)
  std::string work_dir;  // empty: the engine's choice
  job::Resources resources;
  // Hosts on which new incarnations must not start. A host is identified by the value of
  // kNodeVariable in the task where the engine sets it, else by gethostname. A running incarnation
  // is not moved. An end with job::kExitHostExcluded counts as a loss, and the next incarnation
  // starts on another host. If every host is excluded the task is kRefused, and the reason names
  // the hosts.
  std::vector<std::string> excluded_hosts = {};
  // A loss (IsLoss) starts a new incarnation after a back-off (restart_rules.h).
  bool restart_if_lost = true;

  TaskKind kind() const { return KindOfRole(role); }
};

// A bind mount: a directory or file of this machine under another path in the task's container.
struct Mount {
  std::string source;  // absolute
  std::string target;  // absolute
  bool read_only = false;
  // The source is an output directory; the engine creates it if it does not exist.
  bool make_source = false;
};

// Settings that only engines whose tasks are containers use.
struct ContainerSettings {
  std::string user;  // "UID:GID" or a name that the image knows; empty: this process's
  // Working directory of the programs. Empty: the task's if it exists in the container, else the
  // image's WORKDIR.
  std::string work_dir;
  std::vector<Mount> mounts;
  bool programs = false;     // tasks run programs other than shoal's, which the image must contain
  int64_t pids = 0;          // limit on processes and threads of a task; 0: no limit
  int64_t shm_bytes = 0;     // size of /dev/shm; 0: the engine's default
  bool own_network = false;  // the job has a network of its own instead of the host's
};

// The desired state of one job. Plain value.
struct DesiredJob {
  std::string job_id;
  // Absolute path of the job's directory on this machine (token, coordinator.json, logs).
  std::string job_dir;
  std::vector<DesiredTask> tasks;
  std::string image = {};  // container image of the tasks' programs; empty: none
  ContainerSettings container = {};
  // Maximum number of tasks of each elastic role. An engine whose allocation cannot grow asks for
  // this number from the start.
  std::map<std::string, int> max_tasks = {};
  // The job ends when its controller is lost, so the engine may tie it to processes of the
  // controller's machine where that starts faster.
  bool attended = false;
  // Time that programs have to end after SIGTERM, for engines that send it themselves (a drained
  // or preempted node).
  std::chrono::milliseconds stop_grace{10'000};
  job::Slurm slurm = {};
  // Slurm settings of all roles in the job file's order; empty if no role has any.
  std::vector<std::pair<std::string, job::SlurmSettings>> slurm_settings = {};
  job::Kubernetes kubernetes = {};
  std::map<std::string, job::PodSettings> pod_settings =
      {};  // of roles that ask Kubernetes for something
  job::Marathon marathon = {};
  std::map<std::string, job::Health> health = {};  // of roles that have one
  // Bootstrap files (name → content) for engines whose tasks do not share the job's directory.
  // Every task, the coordinator included, finds them in the directory that replaces
  // kBootstrapDirPlaceholder, readable by the task alone: they include a secret ("token"). Never
  // shown to users. Identical in every Apply of a job.
  std::map<std::string, std::string> bootstrap_files = {};
};

enum class TaskPhase : uint8_t { kStarting, kRunning, kEnded, kLost, kRefused };

// How a task's process ended, as the engine saw it. For a launcher this is the launcher's own end;
// the coordinator tracks the ends of programs.
struct TaskEnd {
  int exit_code = -1;  // valid if signal is 0
  int signal = 0;
  bool out_of_memory = false;  // exceeded its own memory limit
  std::string reason;          // one sentence for the user, with the remedy if there is one
};

// A change of a task. Events of one task arrive in order; incarnations never decrease. Plain value.
struct TaskEvent {
  std::string job_id;
  std::string role;
  int index = 0;
  int incarnation = 0;  // number of the start for this (role, index), from 0
  TaskPhase phase = TaskPhase::kStarting;
  TaskEnd end;  // for kEnded, kLost, kRefused
  // Set only for the coordinator: true when all of the job's processes were suspended (end.reason
  // says why), false when they were resumed.
  std::optional<bool> stopped = std::nullopt;
};

// The current state of a task. Plain value.
struct TaskStatus {
  std::string role;
  int index = 0;
  int incarnation = 0;
  TaskPhase phase = TaskPhase::kStarting;
  int64_t pid = 0;  // local engines; 0 elsewhere
};

// The default command of an image: its ENTRYPOINT followed by its CMD.
struct EntryPoint {
  std::vector<std::string> program;    // ENTRYPOINT; if empty, arguments[0] is the program
  std::vector<std::string> arguments;  // CMD; a job's arguments replace it
};

// Resources of a machine or cluster.
struct Capacity {
  double cpu = 0;
  int64_t memory_bytes = 0;
  int gpu = 0;
};

// Address at which the controller reaches a job's coordinator.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
};

// Lifecycle of a job: Apply (any number of times, with changing tasks) or, after a restart of this
// process, Adopt; then Stop. Events arrive through Watch, which callers set up before Apply or
// Adopt. Destroying an Engine stops no task: tasks outlive the process, and a later engine adopts
// them.
//
// Thread-safe: any thread may call any method, except that Stop must not be called from a watch's
// callback. Apply, Adopt and Stop may block while they wait for a daemon or cluster.
class Engine {
 public:
  virtual ~Engine() = default;

  // The name that users give: "local", "docker", …
  virtual std::string name() const = 0;
  // True if the cluster behind the engine queues jobs itself: tasks may wait for resources after
  // Apply, for a long time and more than once. The admission queue then lets all jobs pass, and the
  // coordinator may be absent while the job waits. The reason of a wait is reported as kStarting of
  // the coordinator with a reason.
  virtual bool HasOwnQueue() const { return false; }
  // True if tasks see DesiredJob::job_dir. If false, tasks get DesiredJob::bootstrap_files and the
  // placeholders of placeholders.h, everything else goes over the connection to the address that
  // Dial returns, and a new incarnation of the coordinator may find its directory empty.
  virtual bool SharesJobDirectory() const { return true; }
  // True if the engine identifies tasks by process ids: a controller in another PID namespace can
  // neither adopt nor stop them.
  virtual bool UsesPids() const { return false; }
  // The total of all resources, used or not.
  virtual Result<Capacity> GetCapacity() = 0;

  // The default command of an image. May pull the image. Unimplemented if the engine has no daemon
  // or registry that it can ask.
  virtual Result<EntryPoint> FindEntryPoint(const std::string& image) {
    return Unimplemented("the engine " + name() + " cannot ask for the entry point of the image " +
                         image);
  }

  // Makes exactly these tasks exist: starts missing tasks, stops tasks that are not listed, leaves
  // running tasks unchanged. Idempotent. Returns when all starts have been requested; Watch reports
  // the results. FailedPrecondition if the job is being stopped or another process runs it.
  virtual Status Apply(const DesiredJob& desired) = 0;

  // The requests that Apply would send for a new job, as text for the user (YAML, JSON or a
  // script), without secrets, with the command that removes the job as a comment. Changes nothing
  // and contacts no server.
  virtual Result<std::string> Describe(const DesiredJob& /*desired*/) {
    return Unimplemented("the engine " + name() +
                         " sends nothing that could be shown: it starts processes");
  }

  // Calls `on_event` from a thread of the engine for every change after this call, in order for
  // each task. Destroying the returned object ends the calls and waits for a running one.
  class Watcher {
   public:
    virtual ~Watcher() = default;
  };
  virtual std::unique_ptr<Watcher> Watch(const std::string& job_id,
                                         std::function<void(const TaskEvent&)> on_event) = 0;

  // Stops every task of the job: SIGTERM, and SIGKILL of the whole process tree after `grace`. Then
  // removes everything that carries the job's id. Returns when nothing is left. OK for an unknown
  // job. DeadlineExceeded names a task that cannot be killed.
  virtual Status Stop(const std::string& job_id, std::chrono::milliseconds grace) = 0;

  // Makes a running Apply, Adopt or Stop of the job that waits for a daemon or cluster return soon,
  // with an error. Later calls are not affected. Engines whose calls have short deadlines do
  // nothing.
  virtual void Interrupt(const std::string& /*job_id*/) {}

  // Takes over the tasks of a job that an earlier controller process started, and lists them. Empty
  // if none runs.
  virtual Result<std::vector<TaskStatus>> Adopt(const std::string& job_id,
                                                const std::string& job_dir) = 0;

  // The address at which this process reaches the job's coordinator. Unavailable while the
  // coordinator does not listen yet.
  virtual Result<Endpoint> Dial(const std::string& job_id) = 0;

  // The last `limit` bytes of the launcher's or coordinator's own output. It holds the reason if
  // the task could not join the job.
  virtual Result<std::string> TaskLog(const std::string& job_id, const std::string& role, int index,
                                      size_t limit) = 0;

  // The ability to run commands in tasks and to connect to their ports; null if the engine does not
  // have it. Lives as long as the engine.
  virtual Executes* executes() { return nullptr; }

  // Exec and DialTask of executes(); Unimplemented if the engine does not have the ability.
  Result<std::unique_ptr<Execution>> Exec(const std::string& job_id, const std::string& role,
                                          int index, const ExecSpec& spec) {
    if (Executes* const ability = executes(); ability != nullptr)
      return ability->Exec(job_id, role, index, spec);
    return Unimplemented("the engine " + name() + " cannot run commands in tasks");
  }
  Result<UniqueFd> DialTask(const std::string& job_id, const std::string& role, int index,
                            uint16_t port) {
    if (Executes* const ability = executes(); ability != nullptr)
      return ability->DialTask(job_id, role, index, port);
    return Unimplemented("the engine " + name() + " cannot reach ports of tasks");
  }
};

}  // namespace shoal::engine
