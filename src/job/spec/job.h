// The job: one validated description of a distributed training run (design.md §5), read from a job
// file or imported from the description of another system.
//
// parse.h makes it from YAML, plan.h derives its tasks, policy.h decides how it ends. Plain,
// copyable data.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/spec/kubernetes.h"
#include "job/spec/readiness.h"
#include "job/spec/schedule.h"
#include "job/spec/slurm.h"
#include "job/spec/triggers.h"

namespace shoal::job {

// Bounds that keep sums over all tasks of a job within 64 bits.
inline constexpr int kMaxTasks = 100'000;  // per job, over all roles
inline constexpr int kMaxReplicas = kMaxTasks;
inline constexpr int64_t kMaxMemoryBytes = int64_t{16} << 40;  // of one task
inline constexpr int kMaxGpus = 1024;                          // of one task
inline constexpr double kMaxCpus = 65536;                      // of one task

enum class Framework : uint8_t {
  kShoal,
  kPsLite,
  kTensorflow,
  kPytorch,
  kMpi,
  kHorovod,
  kRabit,
  kSpark,
  kJax,
  kPaddle,
  kGeneric,
};

// Exit code of a launcher whose task must restart on another host (EndAction::kExcludeHost). 77
// asks for a restart on any host.
inline constexpr int kExitHostExcluded = 78;
// Environment variables that an engine may set for launchers: the name of their host; and the path
// of a file into which a launcher writes kExitHostExcluded before it exits with 0, for engines that
// would restart every failed process in place.
inline constexpr const char* kNodeVariable = "SHOAL_NODE";
inline constexpr const char* kExcludedFileVariable = "SHOAL_EXCLUDED_FILE";

// Resources of one task. 0: no limit.
struct Resources {
  double cpu = 0;            // cores
  int64_t memory_bytes = 0;  // of the task's whole process tree
  int gpu = 0;               // whole devices
  // Reservation if it differs from the limit (Kubernetes' requests); 0: equal to the limit.
  double cpu_request = 0;
  int64_t memory_request = 0;

  double cpu_reserved() const { return cpu_request > 0 ? cpu_request : cpu; }
  int64_t memory_reserved() const { return memory_request > 0 ? memory_request : memory_bytes; }
  bool operator==(const Resources&) const = default;
};

enum class RestartWhen : uint8_t { kNever, kTransient, kAlways };
enum class RestartScope : uint8_t { kTask, kRole, kJob };

struct Restart {
  RestartWhen when = RestartWhen::kTransient;
  int limit = 3;  // per task (scope task) or per scope, over the lifetime of the job
  RestartScope scope = RestartScope::kTask;
  std::chrono::milliseconds backoff{500};  // before the first restart; doubles up to backoff_max
  std::chrono::milliseconds backoff_max{30'000};

  bool operator==(const Restart&) const = default;
};

// A port that the launcher leases for a task. `plain`: the program sets neither SO_REUSEADDR nor
// SO_REUSEPORT, so the launcher releases the lease just before exec.
struct Port {
  std::string name;
  bool plain = false;

  bool operator==(const Port&) const = default;
};

// Reaction to the end of a task or to a line of its output; takes precedence over Restart.
// kExcludeHost restarts the task and starts no more programs of its role on that host.
enum class EndAction : uint8_t { kRetry, kFail, kIgnore, kRestartJob, kExcludeHost };

struct ExitRule {
  std::string code;  // syntax: ParseExitMatch in policy.h
  EndAction action = EndAction::kRetry;

  bool operator==(const ExitRule&) const = default;
};

struct LogRule {
  std::string line;
  EndAction action = EndAction::kRetry;

  bool operator==(const LogRule&) const = default;
};

struct Role {
  std::string name;
  int replicas = 1;
  std::optional<int> min_replicas;  // lower bound of an elastic role; none: replicas
  std::optional<int> max_replicas;  // upper bound for `shoal scale`; none: replicas
  int processes = 1;                // number of processes per task
  Resources resources;
  std::vector<std::string> command;  // empty: the job's, else the image's own entry point
  std::vector<std::string>
      args;  // appended to the command; they replace the arguments of an image's entry point
  std::map<std::string, std::string> env;
  std::vector<Port> ports;
  std::string follows;  // role after whose end this role is stopped; empty: none
  Restart restart;
  After after;
  Ready ready;
  Health health;
  std::vector<ExitRule> on_exit;  // the first matching rule applies
  std::vector<LogRule> on_log;
  int checkpoint_signal = 0;  // sent before SIGTERM on suspension; 0: none
  SlurmSettings slurm;        // overrides of the job's `slurm`
  PodSettings kubernetes;     // overrides of the job's `kubernetes`

  int least() const { return min_replicas.value_or(replicas); }
  int most() const { return max_replicas.value_or(replicas); }
  // True if its number of tasks may change while the job runs.
  bool elastic() const { return least() < most(); }
  bool operator==(const Role&) const = default;
};

enum class SuccessRule : uint8_t { kAll, kAny, kFirst, kCount };

struct Success {
  SuccessRule rule = SuccessRule::kAll;
  std::vector<std::string>
      roles;      // roles that the rule evaluates; for kFirst the role whose task 0 decides
  int count = 0;  // for kCount

  bool operator==(const Success&) const = default;
};

struct DataSource {
  std::string name;
  std::vector<std::string> sources;  // paths or URLs; their concatenation in this order is the data
  std::string table;                 // "ads.clicks" of a server's catalogue in place of sources
  std::vector<std::string> columns;  // of the table; empty: all that the user may read
  std::string format = "text";
  std::string shard_by;  // role whose tasks each read one part of the data

  bool operator==(const DataSource&) const = default;
};

struct Checkpoint {
  std::chrono::milliseconds every{0};  // 0: none
  int keep = 2;

  bool operator==(const Checkpoint&) const = default;
};

// Reaction to a stalled job.
enum class OnStall : uint8_t { kReport, kRestart, kFail };

// Lower bound of `stall`: programs regularly pause for shorter times.
inline constexpr std::chrono::milliseconds kLeastStall{5'000};

struct Limits {
  std::chrono::milliseconds gather{300'000};
  std::chrono::milliseconds deadline{0};     // of the whole run; 0: none
  std::chrono::milliseconds stall{600'000};  // 0, or at least kLeastStall
  std::chrono::milliseconds stop_grace{10'000};
  std::chrono::milliseconds coordinator_timeout{30'000};
  std::optional<int>
      restarts;  // limit for counted restarts of all tasks together, over the lifetime of the job
  OnStall on_stall = OnStall::kReport;
  std::chrono::milliseconds keep_records{
      0};  // after the job's end; 0: until they are removed by hand

  bool operator==(const Limits&) const = default;
};

enum class OnControllerLoss : uint8_t { kStop, kKeep };

// A value of the job file's `learn` section with its location, so that an algorithm, which defines
// its own parameters, reports errors with line and column.
struct LearnValue {
  std::string text;  // the scalar as written
  int line = 0;      // 1-based; 0: from --set or from a command line
  int column = 0;

  bool operator==(const LearnValue&) const = default;
};

// Settings of the job's containers besides the image, for engines that run containers
// (docs/engines/docker.md).
struct Container {
  std::vector<std::string> volumes;  // "SOURCE:TARGET" or "SOURCE:TARGET:ro"
  std::string work_dir;              // empty: the image's own
  std::string user;                  // "UID:GID"; empty: the user who runs the job
  int64_t pids = 0;                  // limit for processes and threads per task; 0: none
  int64_t shm_bytes = 0;             // of /dev/shm; 0: the engine's default
  bool own_network = false;          // in place of the host's network

  bool operator==(const Container&) const = default;
};

// A parsed entry of Container::volumes.
struct Volume {
  std::string source;
  std::string target;
  bool read_only = false;
};

// Marathon settings of a job besides its tasks' resources (docs/engines/marathon.md). Other engines
// ignore them.
struct Marathon {
  std::string url;               // empty: SHOAL_MARATHON_URL
  std::string group = "/shoal";  // parent of the job's group
  std::string authorities;       // PEM file with certificate authorities; empty: the system's
  std::string containerizer;     // "", "docker" or "mesos"
  std::string program;           // path of shoal on the agents; empty: the path of this program
  std::string user;              // user on the agents; empty: Marathon's default
  std::vector<std::string> constraints;  // "FIELD:OPERATOR[:VALUE]"
  std::vector<std::string> fetch;        // URIs
  std::vector<std::string> accepted_roles;
  std::vector<std::string> parameters;         // docker run parameters, "KEY=VALUE"
  std::map<std::string, std::string> secrets;  // variable → where the secret store has it
  std::chrono::milliseconds backoff{1'000};    // delay before a lost Mesos task is replaced
  std::chrono::milliseconds longest_backoff{60'000};
  std::chrono::milliseconds unreachable{0};  // tolerated absence of an agent; 0: none
  int port = 0;                              // port of the coordinator; 0: any offered port
  bool privileged = false;
  bool force_pull = false;

  bool operator==(const Marathon&) const = default;
};

struct Job {
  std::string file;  // source file, for messages; empty: made by a command
  std::string name;
  Framework framework = Framework::kGeneric;
  std::string queue = "default";
  int priority = 0;
  std::string image;
  Container container;
  std::string files;  // directory to copy to the tasks; empty: none
  std::vector<std::string> command;
  std::map<std::string, std::string> env;
  std::map<std::string, LearnValue> learn;  // framework shoal: algorithm and its parameters
  std::vector<DataSource> data;
  std::vector<Role> roles;  // in the order of the file
  Success success;
  Checkpoint checkpoint;
  std::string store;  // file:///…; empty: the embedded store
  Limits limits;
  std::optional<OnControllerLoss> on_controller_loss;
  std::map<std::string, std::string> outputs;  // "model" → directory
  Slurm slurm;
  Kubernetes kubernetes;
  Marathon marathon;
  Schedule schedule;
  Triggers triggers;

  const Role* FindRole(const std::string& role) const;
  // Command of the role, or of the job, with the role's arguments; empty: the image's own entry
  // point.
  std::vector<std::string> CommandOf(const Role& role) const;
  bool operator==(const Job&) const = default;
};

}  // namespace shoal::job
