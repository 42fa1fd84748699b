// The job: one validated description of a distributed training run (design.md §5), whatever file or
// dialect it came from.
//
// parse.h makes it from YAML, plan.h turns it into tasks, policy.h judges its end. Plain data,
// copyable.
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

namespace shoal::job {

// Bounds that keep sums over a whole job well inside 64 bits.
inline constexpr int kMaxTasks = 100'000;  // of one job, over all its roles
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

// A launcher's exit code which says that its task is to be made again on another host
// (EndAction::kExcludeHost). All others that say no more than that it is to be made again: 77.
inline constexpr int kExitHostExcluded = 78;
// Variables that an engine may give launchers: how it calls their host; and a file into which a
// launcher that is to end with kExitHostExcluded writes that number, to end with 0 then, where all
// that ends badly would be made again in its place.
inline constexpr const char* kNodeVariable = "SHOAL_NODE";
inline constexpr const char* kExcludedFileVariable = "SHOAL_EXCLUDED_FILE";

// What one task may use. 0 means no limit was asked for.
struct Resources {
  double cpu = 0;            // cores
  int64_t memory_bytes = 0;  // of the task's whole process tree
  int gpu = 0;               // whole devices
  // What is set aside for it, where that is not the limit (Kubernetes' requests); 0: the limit.
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
  int limit = 3;  // restarts of one task (scope task) or of the scope, over the life of the job
  RestartScope scope = RestartScope::kTask;
  std::chrono::milliseconds backoff{500};  // before the first restart; doubles up to backoff_max
  std::chrono::milliseconds backoff_max{30'000};

  bool operator==(const Restart&) const = default;
};

// A port the launcher leases for a task. `plain`: the program sets neither SO_REUSEADDR nor
// SO_REUSEPORT, so the lease is let go at exec.
struct Port {
  std::string name;
  bool plain = false;

  bool operator==(const Port&) const = default;
};

// What an end, or a line of output, leads to, instead of what Restart says.
// kExcludeHost is a retry, and the role's programs are started on that host no more.
enum class EndAction : uint8_t { kRetry, kFail, kIgnore, kRestartJob, kExcludeHost };

struct ExitRule {
  std::string code;  // policy.h, ParseExitMatch
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
  std::optional<int> min_replicas;  // elastic lower bound; none: replicas
  std::optional<int> max_replicas;  // `shoal scale` goes so far; none: replicas
  int processes = 1;                // a task starts this many
  Resources resources;
  std::vector<std::string> command;  // empty: the job's, else the image's own entry point
  std::vector<std::string> args;     // behind the command; of an entry point instead of the image's
  std::map<std::string, std::string> env;
  std::vector<Port> ports;
  std::string follows;  // role name: stopped when that role has ended; empty for none
  Restart restart;
  After after;
  Ready ready;
  Health health;
  std::vector<ExitRule> on_exit;  // the first that matches counts
  std::vector<LogRule> on_log;
  int checkpoint_signal = 0;  // before SIGTERM when the job is suspended; 0: none
  SlurmSettings slurm;        // where it wants other nodes than the job's `slurm` does
  PodSettings kubernetes;  // where its pods ask for other things than the job's `kubernetes` does

  int least() const { return min_replicas.value_or(replicas); }
  int most() const { return max_replicas.value_or(replicas); }
  // It may go on with fewer tasks, or become larger.
  bool elastic() const { return least() < most(); }
  bool operator==(const Role&) const = default;
};

enum class SuccessRule : uint8_t { kAll, kAny, kFirst, kCount };

struct Success {
  SuccessRule rule = SuccessRule::kAll;
  std::vector<std::string> roles;  // whose tasks count; for kFirst the role whose task 0 decides
  int count = 0;                   // for kCount

  bool operator==(const Success&) const = default;
};

struct DataSource {
  std::string name;
  std::vector<std::string> sources;  // paths or URLs, in the order in which they make up the data
  std::string format = "text";
  std::string shard_by;  // role among whose tasks the data is split

  bool operator==(const DataSource&) const = default;
};

struct Checkpoint {
  std::chrono::milliseconds every{0};  // 0: none
  int keep = 2;

  bool operator==(const Checkpoint&) const = default;
};

// What is done about a job that stands still.
enum class OnStall : uint8_t { kReport, kRestart, kFail };

// A shorter stall than this would be said of every program that waits for a moment.
inline constexpr std::chrono::milliseconds kLeastStall{5'000};

struct Limits {
  std::chrono::milliseconds gather{300'000};
  std::chrono::milliseconds deadline{0};     // of the whole run; 0: none
  std::chrono::milliseconds stall{600'000};  // 0, or at least kLeastStall
  std::chrono::milliseconds stop_grace{10'000};
  std::chrono::milliseconds coordinator_timeout{30'000};
  std::optional<int> restarts;  // counted ones of all tasks together, over the life of the job
  OnStall on_stall = OnStall::kReport;
  std::chrono::milliseconds keep_records{0};  // after the end; 0: until somebody removes them

  bool operator==(const Limits&) const = default;
};

enum class OnControllerLoss : uint8_t { kStop, kKeep };

// A value of the job file's `learn` section with the place where it stood, so that the algorithm,
// which alone knows its parameters, can complain as well as the parser does.
struct LearnValue {
  std::string text;  // the scalar as written
  int line = 0;      // 1-based; 0: from --set or from a command line
  int column = 0;

  bool operator==(const LearnValue&) const = default;
};

// What a container of the job's tasks is made with beside its image; for engines that have
// containers (docs/engines/docker.md).
struct Container {
  std::vector<std::string> volumes;  // "SOURCE:TARGET" or "SOURCE:TARGET:ro"
  std::string work_dir;              // empty: the image's own
  std::string user;                  // "UID:GID"; empty: of who runs the job
  int64_t pids = 0;                  // most processes and threads of a task; 0: no limit
  int64_t shm_bytes = 0;             // of /dev/shm; 0: the engine's default
  bool own_network = false;          // instead of the machine's

  bool operator==(const Container&) const = default;
};

// One entry of Container::volumes, taken apart.
struct Volume {
  std::string source;
  std::string target;
  bool read_only = false;
};

// What a job asks of Marathon beyond its tasks' resources (docs/engines/marathon.md). Other engines
// ignore it.
struct Marathon {
  std::string url;               // empty: SHOAL_MARATHON_URL
  std::string group = "/shoal";  // above the job's own
  std::string authorities;       // PEM file; empty: the machine's
  std::string containerizer;     // "", "docker" or "mesos"
  std::string program;           // shoal, as agents find it; empty: at this program's own path
  std::string user;              // of the agents; empty: Marathon's default
  std::vector<std::string> constraints;  // "FIELD:OPERATOR[:VALUE]"
  std::vector<std::string> fetch;        // URIs
  std::vector<std::string> accepted_roles;
  std::vector<std::string> parameters;         // of docker run: "KEY=VALUE"
  std::map<std::string, std::string> secrets;  // variable → where the secret store has it
  std::chrono::milliseconds backoff{1'000};    // before a lost Mesos task is made again
  std::chrono::milliseconds longest_backoff{60'000};
  std::chrono::milliseconds unreachable{0};  // how long an agent may be away; 0: no time at all
  int port = 0;                              // of the coordinator; 0: any that is offered
  bool privileged = false;
  bool force_pull = false;

  bool operator==(const Marathon&) const = default;
};

struct Job {
  std::string file;  // where it was read, for messages; empty if made by a command
  std::string name;
  Framework framework = Framework::kGeneric;
  std::string queue = "default";
  int priority = 0;
  std::string image;
  Container container;
  std::string files;  // directory to ship; empty for none
  std::vector<std::string> command;
  std::map<std::string, std::string> env;
  std::map<std::string, LearnValue> learn;  // framework shoal: algorithm and its parameters
  std::vector<DataSource> data;
  std::vector<Role> roles;  // in the file's order
  Success success;
  Checkpoint checkpoint;
  std::string store;  // file:///…; empty: the embedded one
  Limits limits;
  std::optional<OnControllerLoss> on_controller_loss;
  std::map<std::string, std::string> outputs;  // "model" → directory
  Slurm slurm;
  Kubernetes kubernetes;
  Marathon marathon;
  Schedule schedule;

  const Role* FindRole(const std::string& role) const;
  // The role's or the job's, with the role's args; empty: the image's own entry point.
  std::vector<std::string> CommandOf(const Role& role) const;
  bool operator==(const Job&) const = default;
};

}  // namespace shoal::job
