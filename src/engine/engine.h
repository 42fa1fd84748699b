// What an engine must be able to do: make the tasks of a job exist, watch, stop and reach them.
// Nothing else: every rule about roles, success and restarts of programs lives above (rendezvous),
// so that it is the same on every engine.
//
// One implementation a folder: local/, fake/ (the reference, with knobs for tests), later docker/,
// kubernetes/, slurm/, marathon/. tests/contract runs one suite over all of them.
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
#include "engine/placeholders.h"
#include "job/spec/job.h"

namespace shoal::engine {

using job::kNodeVariable;

// One process tree that an engine must make exist: a launcher, or the job's coordinator (role
// "coordinator", index 0).
struct DesiredTask {
  std::string role;
  int index = 0;
  // argv[0] is an absolute path or is looked up in PATH. In words and values of variables stand
  // marks (marks.h).
  std::vector<std::string> argv;
  std::map<std::string, std::string>
      env;               // added to a clean, small environment (PATH, HOME, LANG, TMPDIR …)
  std::string work_dir;  // empty: the engine's choice
  job::Resources resources;
  // Hosts on which it is not to be started any more: by the name in the task's kNodeVariable where
  // the engine sets one, else by the host's own (gethostname). What runs is left alone, whatever
  // its host; what is made again (all ends with job::kExitHostExcluded are losses) is made
  // elsewhere. Where there is no other host it is kRefused, with a reason that names them.
  std::vector<std::string> excluded_hosts = {};
  bool restart_if_lost = true;  // an end with an exit code other than 0 and 77-after-stop makes a
                                // new one, with back-off
};

// A directory or file of this machine that tasks see under a path of their own.
struct Mount {
  std::string source;  // absolute
  std::string target;  // absolute
  bool read_only = false;
  // The source is a directory that is made where there is none: an output goes there.
  bool make_source = false;
};

// What engines whose tasks are containers need beside image and tasks; others do without.
struct ContainerSettings {
  std::string user;      // "UID:GID" or a name that the image knows; empty: this process's
  std::string work_dir;  // of the programs; empty: the task's, where the container has it, else the
                         // image's own
  std::vector<Mount> mounts;
  bool programs = false;     // tasks run programs that are not shoal's: an image must have them
  int64_t pids = 0;          // most processes and threads of a task; 0: no limit
  int64_t shm_bytes = 0;     // of /dev/shm; 0: the engine's default
  bool own_network = false;  // of the job's, instead of the machine's
};

// All that should exist of one job.
struct DesiredJob {
  std::string job_id;
  std::string job_dir;  // absolute; of the job's files on this machine (token, coordinator.json,
                        // logs)
  std::vector<DesiredTask> tasks;
  std::string image = {};  // in which the tasks' programs run; empty: none
  ContainerSettings container = {};
  // Of elastic roles, how many tasks there may be one day: what an engine that cannot grow asks for
  // at once.
  std::map<std::string, int> max_tasks = {};
  // It ends when its controller is lost, so that what holds it together may be processes of the
  // controller's machine, where that is quicker.
  bool attended = false;
  job::Slurm slurm = {};
  // All roles in the file's order with what they ask Slurm for; empty where no role asks.
  std::vector<std::pair<std::string, job::SlurmSettings>> slurm_settings = {};
  job::Kubernetes kubernetes = {};
  std::map<std::string, job::PodSettings> pod_settings =
      {};  // of roles that ask Kubernetes for something
  job::Marathon marathon = {};
  std::map<std::string, job::Health> health = {};  // of roles that have one
  // Where controller and tasks share no directory: small files, by name, which every task of the
  // job, the coordinator too, finds in the directory of its kBootstrapDirPlaceholder, readable by
  // nobody else: a secret is among them ("token"). Never told to people; the same at every Apply of
  // a job's life.
  std::map<std::string, std::string> bootstrap_files = {};
};

enum class TaskPhase : uint8_t { kStarting, kRunning, kEnded, kLost, kRefused };

// How an ended task ended, as the engine saw it (the launcher's own end; programs' ends are the
// coordinator's business).
struct TaskEnd {
  int exit_code = -1;  // valid if signal is 0
  int signal = 0;
  bool out_of_memory = false;  // exceeded its own limit
  std::string reason;          // one sentence for people, with the remedy where there is one
};

struct TaskEvent {
  std::string job_id;
  std::string role;
  int index = 0;
  int incarnation = 0;  // counts what the engine started for this (role, index), from 0
  TaskPhase phase = TaskPhase::kStarting;
  TaskEnd end;  // for kEnded, kLost, kRefused
  // Of the coordinator: all of the job's processes were stopped for a while (true; end.reason says
  // why), or go on (false).
  std::optional<bool> stopped = std::nullopt;
};

struct TaskStatus {
  std::string role;
  int index = 0;
  int incarnation = 0;
  TaskPhase phase = TaskPhase::kStarting;
  int64_t pid = 0;  // local engines; 0 elsewhere
};

// What an image starts where nothing else is said: its ENTRYPOINT with its CMD behind it.
struct EntryPoint {
  std::vector<std::string> program;    // may be empty: the arguments begin with one then
  std::vector<std::string> arguments;  // those that a job's own replace
};

struct Capacity {
  double cpu = 0;
  int64_t memory_bytes = 0;
  int gpu = 0;
};

// Where a controller reaches a job's coordinator.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
};

// A command beside a task's program.
struct ExecSpec {
  std::vector<std::string> argv;  // argv[0]: a path, or looked up in the program's PATH
  std::vector<std::string> env;   // "NAME=value", over the program's
  bool terminal = false;          // one of its own, connected with fds[0] and fds[1]
  uint16_t rows = 24;             // of the terminal
  uint16_t columns = 80;
  int fds[3] = {0, 1,
                2};  // of the caller, open until the end of Wait: what the command reads and writes
};

struct ExecEnd {
  int exit_code = -1;  // valid if signal is 0
  int signal = 0;
};

// A command that was started in a task. It is killed with this object, and when the task's program
// ends.
class Execution {
 public:
  virtual ~Execution() = default;
  // Both may be called while another thread is in Wait.
  virtual void Signal(int signal) = 0;
  virtual void Resize(uint16_t rows, uint16_t columns) = 0;
  // Carries what goes in and comes out, until the command has ended. Once. An error if it could not
  // be started.
  virtual Result<ExecEnd> Wait() = 0;
};

// All methods are thread-safe. An Engine outlives the jobs it runs; destroying it stops nothing.
class Engine {
 public:
  virtual ~Engine() = default;

  // "local", "fake", …
  virtual std::string name() const = 0;
  // True if Apply's tasks may have to wait for what others use, long perhaps and more than once:
  // the queue above need not hold jobs back, and a coordinator may be away for as long. Why it
  // waits is told as kStarting of the coordinator with a reason.
  virtual bool HasOwnQueue() const { return false; }
  // False if tasks do not see DesiredJob::job_dir: then they get DesiredJob::bootstrap_files, fill
  // marks.h's marks, and all else goes over the connection that Dial finds. A coordinator that is
  // made again may find its directory empty.
  virtual bool SharesJobDirectory() const { return true; }
  // True if tasks are processes that are found by their numbers: a process of another PID namespace
  // can neither adopt nor stop them.
  virtual bool UsesPids() const { return false; }
  // What exists, used or not.
  virtual Result<Capacity> GetCapacity() = 0;

  // What the image starts by itself; may fetch the image. Unimplemented where nothing can be asked.
  virtual Result<EntryPoint> FindEntryPoint(const std::string& image) {
    return Unimplemented("the engine " + name() + " cannot ask for the entry point of the image " +
                         image);
  }

  // Makes exactly these tasks exist: starts what is missing, stops what is not named any more,
  // leaves alone what runs. Idempotent. Returns when all starts were asked for; what becomes of
  // them comes through Watch.
  virtual Status Apply(const DesiredJob& desired) = 0;

  // What Apply would send for a job of which nothing exists, as text for people (YAML, JSON, a
  // script), without secrets, with the command that removes it as a comment. Makes nothing and
  // reaches for nobody.
  virtual Result<std::string> Describe(const DesiredJob& /*desired*/) {
    return Unimplemented("the engine " + name() +
                         " sends nothing that could be shown: it starts processes");
  }

  // Calls `on_event` from a thread of the engine for every change after this call, in order for
  // each task. Returning `Watch` object's destruction ends the calls and waits for one under way.
  class Watcher {
   public:
    virtual ~Watcher() = default;
  };
  virtual std::unique_ptr<Watcher> Watch(const std::string& job_id,
                                         std::function<void(const TaskEvent&)> on_event) = 0;

  // Stops every task of the job: SIGTERM, after `grace` SIGKILL of the whole tree; removes
  // everything that carries the job's id. Returns when nothing is left. OK for an unknown job.
  virtual Status Stop(const std::string& job_id, std::chrono::milliseconds grace) = 0;

  // Ends an Apply, Adopt or Stop of the job that is under way and waits for a daemon or cluster
  // that does not answer: it returns soon, with an error. Any thread; calls made later are not
  // affected. Engines whose calls have short deadlines do nothing.
  virtual void Interrupt(const std::string& /*job_id*/) {}

  // Takes over the tasks of a job that an earlier process of ours started, and lists them. Empty if
  // none runs.
  virtual Result<std::vector<TaskStatus>> Adopt(const std::string& job_id,
                                                const std::string& job_dir) = 0;

  // Where the coordinator listens; Unavailable while it does not yet.
  virtual Result<Endpoint> Dial(const std::string& job_id) = 0;

  // The last `limit` bytes of what a task itself said (a launcher's or coordinator's own stderr):
  // the reason when it could not even join.
  virtual Result<std::string> TaskLog(const std::string& job_id, const std::string& role, int index,
                                      size_t limit) = 0;

  // Starts a command in a task, with the program's directory, environment, limits and namespaces,
  // and returns. For any job, whoever runs it. NotFound if the task has no running program,
  // PermissionDenied, Unimplemented. Called by a thread that lives as long as the command.
  virtual Result<std::unique_ptr<Execution>> Exec(const std::string& /*job_id*/,
                                                  const std::string& /*role*/, int /*index*/,
                                                  const ExecSpec& /*spec*/) {
    return Unimplemented("the engine " + name() + " cannot run commands in tasks");
  }

  // A stream to a TCP port on which the task's own processes listen: a socket. Unavailable if none
  // of them does, else as Exec.
  virtual Result<UniqueFd> DialTask(const std::string& /*job_id*/, const std::string& /*role*/,
                                    int /*index*/, uint16_t /*port*/) {
    return Unimplemented("the engine " + name() + " cannot reach ports of tasks");
  }
};

}  // namespace shoal::engine
