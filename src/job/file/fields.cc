#include "job/file/fields.h"

#include <algorithm>

#include "job/file/trigger_fields.h"
#include "job/spec/enum_names.h"

namespace shoal::job {
namespace {

constexpr double kSecond = 1000;  // durations are in milliseconds
constexpr double kHour = 3600 * kSecond;
constexpr double kYear = 365 * 24 * kHour;

template <typename Enum, size_t n>
Enum Pick(const NameEntry<Enum> (&table)[n], const Value& value) {
  return ValueOfName(table, value.text).value_or(table[0].first);
}

void SetRule(Success* success, SuccessRule rule, std::vector<std::string> roles) {
  success->rule = rule;
  success->roles = std::move(roles);
}

// Of a role's `ready` or `health`.
template <typename Check>
void SetReady(Check* check, ReadyBy by, const std::string& port) {
  check->by = by;
  check->port = port;
}

using V = const Value&;
using T = const Target&;

// clang-format off
constexpr Field kFields[] = {
  {.path = "name", .type = Type::kName, .most = 63,
   .fallback = "the file's name without its extension",
   .doc = "Name of the job in lists and logs. It need not be unique.",
   .apply = [](V v, T t) { t.job->name = v.text; }},
  {.path = "framework", .type = Type::kChoice,
   .choices = "shoal|ps-lite|tensorflow|pytorch|mpi|horovod|rabit|spark|jax|paddle|generic",
   .fallback = "generic",
   .doc = "The cluster description that the programs expect, and the meaning of role names. `shoal` runs "
          "the built-in trainers, `generic` any program that reads the SHOAL_ variables.",
   .apply = [](V v, T t) { t.job->framework = Pick(kFrameworks, v); }},
  {.path = "queue", .type = Type::kName, .most = 63, .fallback = "default",
   .doc = "Queue of the job, on a server with queues ([queue.md](queue.md)). Without a server there is one: "
          "another name gives a note and has no effect.",
   .apply = [](V v, T t) { t.job->queue = v.text; }},
  {.path = "priority", .type = Type::kInteger, .least = -1000, .most = 1000, .fallback = "0",
   .doc = "Priority within the queue of a server; larger numbers go first. Without a server the queue is first "
          "in, first out: a priority gives a note and has no effect.",
   .apply = [](V v, T t) { t.job->priority = static_cast<int>(v.integer); }},
  {.path = "image", .type = Type::kText, .most = 1024, .fallback = "none",
   .doc = "Container image of the tasks, on docker, kubernetes and marathon. A role's command replaces "
          "the image's ENTRYPOINT and CMD. A role without a command runs these, with its `args` in place "
          "of the CMD, on the engine docker, which asks the daemon for them. The engines local and slurm "
          "ignore the image and print a note.",
   .apply = [](V v, T t) { t.job->image = v.text; }},
  {.path = "container", .type = Type::kSection, .fallback = "see its fields",
   .doc = "Settings of the tasks' containers besides `image`, on engines with containers "
          "(docs/engines/docker.md). A note before the start names the settings that an engine ignores."},
  {.path = "container.volumes", .type = Type::kTexts, .most = 256, .fallback = "none",
   .doc = "Host paths that the tasks see: `SOURCE:TARGET`, followed by `:ro` for read-only. SOURCE is "
          "absolute or relative to the job file, TARGET is absolute. Sources of `data` and parents of "
          "`outputs` are mounted automatically.",
   .apply = [](V v, T t) { t.job->container.volumes = v.texts; }},
  {.path = "container.work_dir", .type = Type::kText, .most = 4096, .fallback = "the image's own",
   .doc = "Working directory of the programs; without an image they start in the job file's directory.",
   .apply = [](V v, T t) { t.job->container.work_dir = v.text; }},
  {.path = "container.user", .type = Type::kText, .most = 256, .fallback = "the user who runs the job",
   .doc = "User of the programs: UID or UID:GID as numbers. It must be able to read the job's directory.",
   .apply = [](V v, T t) { t.job->container.user = v.text; }},
  {.path = "container.pids", .type = Type::kInteger, .least = 16, .most = 4'194'304,
   .fallback = "no limit",
   .doc = "Maximum number of processes and threads of a task.",
   .apply = [](V v, T t) { t.job->container.pids = v.integer; }},
  {.path = "container.shm", .type = Type::kSize, .least = 1 << 20,
   .most = static_cast<double>(kMaxMemoryBytes), .fallback = "1Gi",
   .doc = "Maximum size of a task's /dev/shm, which PyTorch's data loaders use.",
   .apply = [](V v, T t) { t.job->container.shm_bytes = v.integer; }},
  {.path = "container.network", .type = Type::kChoice, .choices = "host|job", .fallback = "host",
   .doc = "Network of the tasks: the machine's, or a private network of the job in which tasks reach only "
          "each other, as ROLE-INDEX (on Docker).",
   .apply = [](V v, T t) { t.job->container.own_network = v.text == "job"; }},
  {.path = "files", .type = Type::kText, .most = 4096, .fallback = "none",
   .doc = "Without an image: a directory that is copied to every task, which starts in its own copy "
          "(docs/files.md). `.shoalignore` excludes files; a `requirements.txt` creates a virtual "
          "environment.",
   .apply = [](V v, T t) { t.job->files = v.text; }},
  {.path = "command", .type = Type::kCommand, .most = 1000,
   .fallback = "none; framework shoal has commands for the roles server and worker",
   .doc = "The program and its arguments, for every role without its own command. It runs without a "
          "shell: to use one, write `[sh, -c, \"...\"]`. `@shoal` as the first word is this program.",
   .apply = [](V v, T t) { t.job->command = v.texts; }},
  {.path = "env", .type = Type::kVariables, .fallback = "none",
   .doc = "Environment variables of every task. Variables that Shoal sets are refused. `{secret: "
          "NAME}` and `{secret_file: NAME}` are values of secrets ([secrets](secrets.md)).",
   .apply = [](V v, T t) { t.job->env = v.map; }},
  {.path = "learn", .type = Type::kLearn, .fallback = "none",
   .doc = "Framework shoal: `algorithm` and its parameters, for example `{algorithm: word2vec, dim: "
          "100}`. The algorithm validates them.",
   .apply = [](V v, T t) { t.job->learn = v.learn; }},

  {.path = "data", .type = Type::kSections, .shorthand = "source", .fallback = "none",
   .doc = "The data sets, by name. `train: path` is short for `train: {source: path}`. Framework shoal "
          "reads `train` and, except word2vec, evaluates the model on `test`. Programs of other "
          "frameworks read their part by `shoal.data` of Python or `shoal data read` "
          "([data](data.md#data-of-any-program))."},
  {.path = "data.*.source", .type = Type::kTexts, .most = 100'000, .fallback = "required, or `table`",
   .doc = "A path, a URI ([data](data.md)), or a pattern such as news/*.txt.zst; or a list of them, which "
          "is concatenated in this order. A pattern is replaced by the matching files, sorted by name, on "
          "the machine where the job is submitted.",
   .apply = [](V v, T t) { t.data->sources = v.texts; }},
  {.path = "data.*.table", .type = Type::kText, .most = 127, .fallback = "none",
   .doc = "A table of the server's catalogue, DATABASE.TABLE, in place of `source` ([catalog](catalog.md)). "
          "The job reads what its user may see of it.",
   .apply = [](V v, T t) { t.data->table = v.text; }},
  {.path = "data.*.columns", .type = Type::kTexts, .most = 10'000, .fallback = "all that the user may read",
   .doc = "Columns of the table.",
   .apply = [](V v, T t) { t.data->columns = v.texts; }},
  {.path = "data.*.format", .type = Type::kChoice,
   .choices = "text|libsvm|libffm|csv|tsv|jsonl|json|parquet|tfrecord", .fallback = "text",
   .doc = "Format of the data; for other frameworks, left out, the ending of the first name decides. "
          "`json` is `jsonl`.",
   .apply = [](V v, T t) { t.data->format = v.text; }},
  {.path = "data.*.shard_by", .type = Type::kRole,
   .fallback = "worker, or the first role without `follows`",
   .doc = "Role whose tasks each read one part of the data; the parts are exact and do not overlap.",
   .apply = [](V v, T t) { t.data->shard_by = v.text; }},

  {.path = "roles", .type = Type::kSections, .shorthand = "replicas",
   .fallback = "one worker for framework shoal, else one task of a role named task",
   .doc = "The kinds of tasks, by name (lower-case letters, digits and '-'). `worker: 4` is short for "
          "`worker: {replicas: 4}`."},
  {.path = "roles.*.replicas", .type = Type::kInteger, .most = kMaxReplicas, .fallback = "1",
   .doc = "Number of tasks of this role; with `min` or `max`, the initial number.",
   .apply = [](V v, T t) { t.role->replicas = static_cast<int>(v.integer); }},
  {.path = "roles.*.min", .type = Type::kInteger, .most = kMaxReplicas, .fallback = "replicas",
   .doc = "Minimum number of tasks with which the job starts and continues: tasks beyond it that do not "
          "join, or fail finally, do not end the job.",
   .apply = [](V v, T t) { t.role->min_replicas = static_cast<int>(v.integer); }},
  {.path = "roles.*.max", .type = Type::kInteger, .most = kMaxReplicas, .fallback = "replicas",
   .doc = "Maximum number of tasks that `shoal scale` may set.",
   .apply = [](V v, T t) { t.role->max_replicas = static_cast<int>(v.integer); }},
  {.path = "roles.*.processes", .type = Type::kInteger, .least = 1, .most = 1024, .fallback = "1",
   .doc = "Number of processes per task, for example one per GPU.",
   .apply = [](V v, T t) { t.role->processes = static_cast<int>(v.integer); }},
  {.path = "roles.*.resources", .type = Type::kSection, .fallback = "no limits",
   .doc = "Limits of one task."},
  {.path = "roles.*.resources.cpu", .type = Type::kNumber, .most = kMaxCpus, .fallback = "no limit",
   .doc = "Cores; 0.5 is half a core.",
   .apply = [](V v, T t) { t.role->resources.cpu = v.number; }},
  {.path = "roles.*.resources.memory", .type = Type::kSize, .least = 1 << 20,
   .most = static_cast<double>(kMaxMemoryBytes), .fallback = "no limit",
   .doc = "Memory of the task's whole process tree.",
   .apply = [](V v, T t) { t.role->resources.memory_bytes = v.integer; }},
  {.path = "roles.*.resources.gpu", .type = Type::kInteger, .most = kMaxGpus, .fallback = "0",
   .doc = "Whole GPUs for exclusive use; CUDA_VISIBLE_DEVICES names them. A task without GPUs sees none.",
   .apply = [](V v, T t) { t.role->resources.gpu = static_cast<int>(v.integer); }},
  {.path = "roles.*.resources.requests", .type = Type::kSection, .fallback = "the limits", .doc = "Reservations of the task."},
  {.path = "roles.*.resources.requests.cpu", .type = Type::kNumber, .most = kMaxCpus, .fallback = "the limit",
   .doc = "Reserved cores.",
   .apply = [](V v, T t) { t.role->resources.cpu_request = v.number; }},
  {.path = "roles.*.resources.requests.memory", .type = Type::kSize, .least = 1 << 20,
   .most = static_cast<double>(kMaxMemoryBytes), .fallback = "the limit",
   .doc = "Reserved memory.",
   .apply = [](V v, T t) { t.role->resources.memory_request = v.integer; }},
  {.path = "roles.*.command", .type = Type::kCommand, .most = 1000, .fallback = "the job's",
   .doc = "The program of this role and its arguments.",
   .apply = [](V v, T t) { t.role->command = v.texts; }},
  {.path = "roles.*.args", .type = Type::kTexts, .most = 1000, .fallback = "none; for an image's own entry point the image's",
   .doc = "Arguments after the command, or, without a command, after the image's entry point.",
   .apply = [](V v, T t) { t.role->args = v.texts; }},
  {.path = "roles.*.env", .type = Type::kVariables, .fallback = "none",
   .doc = "Environment variables of this role's tasks; they override the job's.",
   .apply = [](V v, T t) { t.role->env = v.map; }},
  {.path = "roles.*.ports", .type = Type::kPorts, .most = 16,
   .fallback = "none; for the framework's own roles see docs/frameworks.md",
   .doc = "Ports of each task, by name: SHOAL_PORT is the first, SHOAL_PORT_GRPC the one named grpc. "
          "`{name: grpc, plain: true}` in place of a name is for a program that sets neither SO_REUSEADDR "
          "nor SO_REUSEPORT.",
   .apply = [](V v, T t) { t.role->ports = v.ports; }},
  {.path = "roles.*.follows", .type = Type::kRole,
   .fallback = "none; for the framework's own roles see docs/frameworks.md",
   .doc = "Role after whose last task this role is stopped; `~` for none.",
   .apply = [](V v, T t) { t.role->follows = v.text; }},
  {.path = "roles.*.restart", .type = Type::kSection, .fallback = "see its fields",
   .doc = "Restart policy for failed tasks."},
  {.path = "roles.*.restart.when", .type = Type::kChoice, .choices = "never|transient|always",
   .fallback = "transient",
   .doc = "`transient`: after a signal, a lost machine and the first out-of-memory, but not after an exit "
          "code from 1 to 127. `always`: after every end except exit code 0.",
   .apply = [](V v, T t) { t.role->restart.when = Pick(kRestartWhens, v); }},
  {.path = "roles.*.restart.limit", .type = Type::kInteger, .most = 1000, .fallback = "3",
   .doc = "Maximum number of restarts over the lifetime of the job.",
   .apply = [](V v, T t) { t.role->restart.limit = static_cast<int>(v.integer); }},
  {.path = "roles.*.restart.scope", .type = Type::kChoice, .choices = "task|role|job",
   .fallback = "job for pytorch, mpi, horovod, rabit and ps-lite, else task",
   .doc = "The tasks that restart together with the failed one.",
   .apply = [](V v, T t) { t.role->restart.scope = Pick(kRestartScopes, v); }},
  {.path = "roles.*.restart.backoff", .type = Type::kDuration, .most = kHour, .fallback = "500ms",
   .doc = "Delay before the first restart; doubles with each restart.",
   .apply = [](V v, T t) { t.role->restart.backoff = v.duration; }},
  {.path = "roles.*.restart.backoff_max", .type = Type::kDuration, .most = kHour, .fallback = "30s",
   .doc = "Maximum delay.",
   .apply = [](V v, T t) { t.role->restart.backoff_max = v.duration; }},
  {.path = "roles.*.on_exit", .type = Type::kExitRules, .most = 64, .fallback = "none",
   .doc = "Reactions to the end of a task, which take precedence over `restart`; the first matching rule "
          "applies. `code` is an exit code, a range such as 128-255, a signal such as SIGKILL, `signal` "
          "for any signal, `out-of-memory` or `lost`; a code from 129 also means the signal that a shell "
          "encodes by it. `retry` restarts the task within `restart.limit`, `fail` does not, `ignore` "
          "treats the end as success, `restart_job` restarts all tasks, `exclude_host` is `retry` and "
          "starts no more programs of the role on that host.",
   .apply = [](V v, T t) { t.role->on_exit = v.exit_rules; }},
  {.path = "roles.*.on_log", .type = Type::kLogRules, .most = 64, .fallback = "none",
   .doc = "Reactions to a line of output: the task is stopped, and `retry`, `fail`, `restart_job` or "
          "`exclude_host` applies for any exit code. `line` matches the whole line, `*` stands for any "
          "text.",
   .apply = [](V v, T t) { t.role->on_log = v.log_rules; }},
  {.path = "roles.*.checkpoint_signal", .type = Type::kChoice,
   .choices = "none|SIGUSR1|SIGUSR2|SIGHUP|SIGINT", .fallback = "none",
   .doc = "Signal that makes its programs save when the job is suspended. They have `limits.stop_grace` "
          "to save and end, and the same time again after SIGTERM.",
   .apply = [](V v, T t) { t.role->checkpoint_signal = Pick(kCheckpointSignals, v); }},
  {.path = "roles.*.after", .type = Type::kSection, .fallback = "none",
   .doc = "Roles whose programs must run before this role's programs start; applies to every start. All "
          "tasks join and get their ports before."},
  {.path = "roles.*.after.role", .type = Type::kRoles, .most = 256, .fallback = "required",
   .doc = "The role or roles to wait for.",
   .apply = [](V v, T t) { t.role->after.roles = v.texts; }},
  {.path = "roles.*.after.when", .type = Type::kChoice, .choices = "started|ready|ended",
   .fallback = "ready",
   .doc = "Wait until all their tasks have started, are `ready` (a role without `ready` is ready when "
          "started) or have ended.",
   .apply = [](V v, T t) { t.role->after.when = Pick(kAfterWhens, v); }},
  {.path = "roles.*.ready", .type = Type::kSection, .fallback = "as soon as it runs",
   .doc = "Check by which the launcher sees that a task is ready: exactly one of `tcp`, `http`, "
          "`command`, `log`."},
  {.path = "roles.*.ready.tcp", .type = Type::kName, .most = 15, .fallback = "-",
   .doc = "Ready when the port of this name accepts connections.",
   .apply = [](V v, T t) { SetReady(&t.role->ready, ReadyBy::kTcp, v.text); }},
  {.path = "roles.*.ready.http", .type = Type::kSection, .fallback = "-",
   .doc = "Ready when a GET returns a status from 200 to 399."},
  {.path = "roles.*.ready.http.port", .type = Type::kName, .most = 15, .fallback = "required",
   .doc = "Name of the port.",
   .apply = [](V v, T t) { SetReady(&t.role->ready, ReadyBy::kHttp, v.text); }},
  {.path = "roles.*.ready.http.path", .type = Type::kText, .most = 1024, .fallback = "/",
   .doc = "Path of the request.",
   .apply = [](V v, T t) { t.role->ready.path = v.text; }},
  {.path = "roles.*.ready.command", .type = Type::kCommand, .most = 1000, .fallback = "-",
   .doc = "Ready when this command exits with 0; it gets the task's environment.",
   .apply = [](V v, T t) {
     t.role->ready.by = ReadyBy::kCommand;
     t.role->ready.command = v.texts;
   }},
  {.path = "roles.*.ready.log", .type = Type::kText, .most = 1024, .fallback = "-",
   .doc = "Ready when a line of the task's output matches; `*` stands for any text.",
   .apply = [](V v, T t) {
     t.role->ready.by = ReadyBy::kLog;
     t.role->ready.line = v.text;
   }},
  {.path = "roles.*.ready.every", .type = Type::kDuration, .least = 10, .most = kHour,
   .fallback = "250ms",
   .doc = "Interval between checks.",
   .apply = [](V v, T t) { t.role->ready.every = v.duration; }},
  {.path = "roles.*.ready.timeout", .type = Type::kDuration, .most = kYear, .fallback = "5m",
   .doc = "Time after which a task that is not ready is killed, which is a transient end; 0: never.",
   .apply = [](V v, T t) { t.role->ready.timeout = v.duration; }},
  {.path = "roles.*.slurm", .type = Type::kSection, .fallback = "the job's",
   .doc = "Slurm settings of this role that override the job's. Roles with different settings get "
          "different nodes of one heterogeneous allocation (docs/engines/slurm.md)."},
  {.path = "roles.*.slurm.partition", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.partition`",
   .doc = "The partition, or several separated by commas.",
   .apply = [](V v, T t) { t.role->slurm.partition = v.text; }},
  {.path = "roles.*.slurm.account", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.account`",
   .doc = "The account that its nodes are charged to.",
   .apply = [](V v, T t) { t.role->slurm.account = v.text; }},
  {.path = "roles.*.slurm.qos", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.qos`",
   .doc = "The quality of service.",
   .apply = [](V v, T t) { t.role->slurm.qos = v.text; }},
  {.path = "roles.*.slurm.constraint", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.constraint`",
   .doc = "Required features of its nodes.",
   .apply = [](V v, T t) { t.role->slurm.constraint = v.text; }},
  {.path = "roles.*.slurm.reservation", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.reservation`",
   .doc = "The reservation of its nodes.",
   .apply = [](V v, T t) { t.role->slurm.reservation = v.text; }},
  {.path = "roles.*.slurm.gpu_type", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.gpu_type`",
   .doc = "Type of GPU, by the cluster's name.",
   .apply = [](V v, T t) { t.role->slurm.gpu_type = v.text; }},
  {.path = "roles.*.slurm.nodes", .type = Type::kInteger, .most = kMaxTasks, .fallback = "0, as many as needed",
   .doc = "Number of nodes for the roles with the same settings.",
   .apply = [](V v, T t) { t.role->slurm.nodes = static_cast<int>(v.integer); }},
  {.path = "roles.*.slurm.options", .type = Type::kTexts, .most = 256, .fallback = "the job's `slurm.options`",
   .doc = "More sbatch options for these nodes, passed unchanged, in place of the job's.",
   .apply = [](V v, T t) { t.role->slurm.options = v.texts; }},

  {.path = "roles.*.health", .type = Type::kSection, .fallback = "no check",
   .doc = "Marathon's check of a running program. If it fails, Marathon ends the Mesos task and starts "
          "another: exactly one of `tcp`, `http`, `command`. Other engines have no such check."},
  {.path = "roles.*.health.tcp", .type = Type::kName, .most = 15, .fallback = "-",
   .doc = "Healthy while the port of this name accepts connections.",
   .apply = [](V v, T t) { SetReady(&t.role->health, ReadyBy::kTcp, v.text); }},
  {.path = "roles.*.health.http", .type = Type::kSection, .fallback = "-",
   .doc = "Healthy while a GET returns a status from 200 to 399."},
  {.path = "roles.*.health.http.port", .type = Type::kName, .most = 15, .fallback = "required",
   .doc = "Name of the port.",
   .apply = [](V v, T t) { SetReady(&t.role->health, ReadyBy::kHttp, v.text); }},
  {.path = "roles.*.health.http.path", .type = Type::kText, .most = 1024, .fallback = "/",
   .doc = "Path of the request.",
   .apply = [](V v, T t) { t.role->health.path = v.text; }},
  {.path = "roles.*.health.command", .type = Type::kCommand, .most = 1000, .fallback = "-",
   .doc = "Healthy while this command exits with 0; it gets the program's environment.",
   .apply = [](V v, T t) {
     t.role->health.by = ReadyBy::kCommand;
     t.role->health.command = v.texts;
   }},
  {.path = "roles.*.health.grace", .type = Type::kDuration, .most = kYear, .fallback = "5m",
   .doc = "Time after each start of the program without checks.",
   .apply = [](V v, T t) { t.role->health.grace = v.duration; }},
  {.path = "roles.*.health.every", .type = Type::kDuration, .least = 1000, .most = kHour, .fallback = "60s",
   .doc = "Interval between checks, in whole seconds.",
   .apply = [](V v, T t) { t.role->health.every = v.duration; }},
  {.path = "roles.*.health.timeout", .type = Type::kDuration, .least = 1000, .most = kHour, .fallback = "20s",
   .doc = "A check without an answer within this time has failed; whole seconds.",
   .apply = [](V v, T t) { t.role->health.timeout = v.duration; }},
  {.path = "roles.*.health.failures", .type = Type::kInteger, .least = 1, .most = 1000, .fallback = "3",
   .doc = "Number of consecutive failures after which the program is ended.",
   .apply = [](V v, T t) { t.role->health.failures = static_cast<int>(v.integer); }},

  {.path = "success", .type = Type::kSection,
   .fallback = "all tasks of worker, or without such a role, of all roles without `follows`; with "
               "tensorflow the chief, or worker 0 beside parameter servers; with pytorch, horovod and "
               "rabit all ranked tasks; with mpi the launcher",
   .doc = "Condition for the job's success: exactly one of `all`, `any`, `first`, `count`."},
  {.path = "success.all", .type = Type::kRoles, .fallback = "-",
   .doc = "Every task of these roles has succeeded.",
   .apply = [](V v, T t) { SetRule(&t.job->success, SuccessRule::kAll, v.texts); }},
  {.path = "success.any", .type = Type::kRoles, .fallback = "-",
   .doc = "One task of these roles has succeeded.",
   .apply = [](V v, T t) { SetRule(&t.job->success, SuccessRule::kAny, v.texts); }},
  {.path = "success.first", .type = Type::kRole, .fallback = "-",
   .doc = "Task 0 of this role has succeeded; an earlier final failure of another task fails the job.",
   .apply = [](V v, T t) { SetRule(&t.job->success, SuccessRule::kFirst, {v.text}); }},
  {.path = "success.count", .type = Type::kInteger, .least = 1, .most = kMaxTasks, .fallback = "-",
   .doc = "This number of tasks of the roles in `of` has succeeded.",
   .apply = [](V v, T t) {
     t.job->success.rule = SuccessRule::kCount;
     t.job->success.count = static_cast<int>(v.integer);
   }},
  {.path = "success.of", .type = Type::kRoles, .fallback = "worker, or all roles without `follows`",
   .doc = "With `count`: the roles whose tasks count.",
   .apply = [](V v, T t) { t.job->success.roles = v.texts; }},

  {.path = "checkpoint", .type = Type::kSection, .fallback = "none",
   .doc = "Checkpoints of parameter servers: those of framework shoal, and `@shoal ps-server`; not on "
          "kubernetes."},
  {.path = "checkpoint.every", .type = Type::kDuration, .most = kYear, .fallback = "0, none",
   .doc = "Interval between checkpoints.",
   .apply = [](V v, T t) { t.job->checkpoint.every = v.duration; }},
  {.path = "checkpoint.keep", .type = Type::kInteger, .least = 1, .most = 1000, .fallback = "2",
   .doc = "Number of latest checkpoints to keep.",
   .apply = [](V v, T t) { t.job->checkpoint.keep = static_cast<int>(v.integer); }},

  {.path = "store", .type = Type::kText, .most = 4096, .fallback = "the embedded store",
   .doc = "Reserved: a job with this field is refused. All data of a job is stored in SHOAL_HOME.",
   .apply = [](V v, T t) { t.job->store = v.text; }},

  {.path = "limits", .type = Type::kSection, .fallback = "see its fields",
   .doc = "Time limits; 0 means no limit where 0 is allowed."},
  {.path = "limits.gather", .type = Type::kDuration, .least = 100, .most = kYear, .fallback = "5m",
   .doc = "Time until all tasks have joined; then the job releases its resources. On a server it is queued "
          "again, up to five times, 10 s later and twice that each time; `shoal run` reports that it failed.",
   .apply = [](V v, T t) { t.job->limits.gather = v.duration; }},
  {.path = "limits.deadline", .type = Type::kDuration, .most = kYear, .fallback = "0, none",
   .doc = "Time limit of the whole run.",
   .apply = [](V v, T t) { t.job->limits.deadline = v.duration; }},
  {.path = "limits.stall", .type = Type::kDuration, .most = kYear, .fallback = "10m",
   .doc = "A job is stalled if for this time no task has printed, reported, computed or used the network; "
          "0: no detection, otherwise at least 5s.",
   .apply = [](V v, T t) { t.job->limits.stall = v.duration; }},
  {.path = "limits.on_stall", .type = Type::kChoice, .choices = "report|restart|fail",
   .fallback = "report",
   .doc = "Reaction to a stall, after the activity of all processes was recorded: none, restart of all "
          "tasks (at most as often as the largest `restart.limit` of the roles), or failure of the job.",
   .apply = [](V v, T t) { t.job->limits.on_stall = Pick(kOnStalls, v); }},
  {.path = "limits.stop_grace", .type = Type::kDuration, .most = kHour, .fallback = "10s",
   .doc = "Time between SIGTERM and SIGKILL.",
   .apply = [](V v, T t) { t.job->limits.stop_grace = v.duration; }},
  {.path = "limits.restarts", .type = Type::kInteger, .most = 1'000'000, .fallback = "no limit",
   .doc = "Maximum number of restarts of all tasks together over the lifetime of the job, besides each "
          "role's `restart.limit`; a failure beyond it fails the job.",
   .apply = [](V v, T t) { t.job->limits.restarts = static_cast<int>(v.integer); }},
  {.path = "limits.coordinator_timeout", .type = Type::kDuration, .least = 100, .most = kHour,
   .fallback = "30s",
   .doc = "Time that a task continues without its coordinator.",
   .apply = [](V v, T t) { t.job->limits.coordinator_timeout = v.duration; }},
  {.path = "limits.keep_records", .type = Type::kDuration, .most = 100 * kYear,
   .fallback = "0, until `shoal jobs --prune`",
   .doc = "Time after the job's end for which its record, logs and directory are kept.",
   .apply = [](V v, T t) { t.job->limits.keep_records = v.duration; }},

  {.path = "on_controller_loss", .type = Type::kChoice, .choices = "stop|keep",
   .fallback = "stop",
   .doc = "Reaction to the death of the job's controller, the command that runs it: `keep` lets the job "
          "run to its end.",
   .apply = [](V v, T t) { t.job->on_controller_loss = Pick(kControllerLosses, v); }},
  {.path = "outputs", .type = Type::kTextMap, .fallback = "none",
   .doc = "Named directories that the job writes. SHOAL_OUTPUT is the one named model, or the only one. "
          "Without outputs each attempt of each task gets its own SHOAL_OUTPUT, see `shoal outputs`.",
   .apply = [](V v, T t) { t.job->outputs = v.map; }},

  {.path = "slurm", .type = Type::kSection, .fallback = "see its fields",
   .doc = "Settings for `--engine slurm` besides the roles' resources; other engines ignore them."},
  {.path = "slurm.partition", .type = Type::kText, .most = 256, .fallback = "Slurm's default",
   .doc = "The partition, or several separated by commas.",
   .apply = [](V v, T t) { t.job->slurm.partition = v.text; }},
  {.path = "slurm.account", .type = Type::kText, .most = 256, .fallback = "the user's default",
   .doc = "The account that is charged.",
   .apply = [](V v, T t) { t.job->slurm.account = v.text; }},
  {.path = "slurm.qos", .type = Type::kText, .most = 256, .fallback = "the account's default",
   .doc = "The quality of service.",
   .apply = [](V v, T t) { t.job->slurm.qos = v.text; }},
  {.path = "slurm.constraint", .type = Type::kText, .most = 256, .fallback = "none",
   .doc = "Required features of the nodes, in the syntax of `sbatch --constraint`.",
   .apply = [](V v, T t) { t.job->slurm.constraint = v.text; }},
  {.path = "slurm.reservation", .type = Type::kText, .most = 256, .fallback = "none",
   .doc = "The reservation to use.",
   .apply = [](V v, T t) { t.job->slurm.reservation = v.text; }},
  {.path = "slurm.gpu_type", .type = Type::kText, .most = 256, .fallback = "any",
   .doc = "Type of GPU, by the cluster's name: a100.",
   .apply = [](V v, T t) { t.job->slurm.gpu_type = v.text; }},
  {.path = "slurm.nodes", .type = Type::kInteger, .most = kMaxTasks, .fallback = "0, as many as needed",
   .doc = "Number of nodes of the job.",
   .apply = [](V v, T t) { t.job->slurm.nodes = static_cast<int>(v.integer); }},
  {.path = "slurm.time", .type = Type::kDuration, .most = kYear, .fallback = "the partition's",
   .doc = "Time limit of the allocation. Shortly before it ends the tasks save, and the job continues in "
          "another one.",
   .apply = [](V v, T t) { t.job->slurm.time = v.duration; }},
  {.path = "slurm.save_before", .type = Type::kDuration, .least = 1000, .most = 12 * kHour, .fallback = "2m",
   .doc = "Time before that limit at which the tasks are asked to save.",
   .apply = [](V v, T t) { t.job->slurm.save_before = v.duration; }},
  {.path = "slurm.requeue", .type = Type::kChoice, .choices = "true|false", .fallback = "true",
   .doc = "Whether Slurm restarts the job after the loss of its first node or the end of its time.",
   .apply = [](V v, T t) { t.job->slurm.requeue = v.text == "true"; }},
  {.path = "slurm.exclusive", .type = Type::kChoice, .choices = "true|false", .fallback = "false",
   .doc = "Whether its nodes run no other jobs.",
   .apply = [](V v, T t) { t.job->slurm.exclusive = v.text == "true"; }},
  {.path = "slurm.options", .type = Type::kTexts, .most = 256, .fallback = "none",
   .doc = "More sbatch options, passed unchanged: [--licenses=matlab, --mail-type=END]. `--array`, "
          "`--wrap`, `--chdir` and `--test-only` are refused, because they would change the job.",
   .apply = [](V v, T t) { t.job->slurm.options = v.texts; }},

  {.path = "marathon", .type = Type::kSection, .fallback = "see its fields",
   .doc = "Settings for `--engine marathon` besides the roles' resources; other engines ignore them."},
  {.path = "marathon.url", .type = Type::kText, .most = 1024, .fallback = "$SHOAL_MARATHON_URL",
   .doc = "Address of Marathon: http://leader.mesos:8080, or https://HOST/service/marathon. Credentials "
          "come from SHOAL_MARATHON_TOKEN, SHOAL_MARATHON_USER, or a file named by "
          "SHOAL_MARATHON_CREDENTIALS.",
   .apply = [](V v, T t) { t.job->marathon.url = v.text; }},
  {.path = "marathon.group", .type = Type::kText, .most = 256, .fallback = "/shoal",
   .doc = "Group in which each job gets its own group.",
   .apply = [](V v, T t) { t.job->marathon.group = v.text; }},
  {.path = "marathon.authorities", .type = Type::kText, .most = 4096, .fallback = "the system's",
   .doc = "PEM file with the certificate authorities for Marathon's certificate.",
   .apply = [](V v, T t) { t.job->marathon.authorities = v.text; }},
  {.path = "marathon.containerizer", .type = Type::kChoice, .choices = "none|docker|mesos",
   .fallback = "docker with an image, else none",
   .doc = "Containerizer of the tasks: Docker, with the host's network, or Mesos.",
   .apply = [](V v, T t) { t.job->marathon.containerizer = v.text; }},
  {.path = "marathon.program", .type = Type::kText, .most = 4096, .fallback = "this program's own path",
   .doc = "Location of shoal on the agents: a path, or a name in the sandbox if `fetch` brings it.",
   .apply = [](V v, T t) { t.job->marathon.program = v.text; }},
  {.path = "marathon.user", .type = Type::kText, .most = 256, .fallback = "Marathon's default",
   .doc = "User of the tasks on the agents; it must be able to read and write the job's directory.",
   .apply = [](V v, T t) { t.job->marathon.user = v.text; }},
  {.path = "marathon.constraints", .type = Type::kTexts, .most = 256, .fallback = "none",
   .doc = "Placement constraints of every role: FIELD:OPERATOR or FIELD:OPERATOR:VALUE, as in "
          "[\"@hostname:UNIQUE\", \"rack:LIKE:r[1-3]\"].",
   .apply = [](V v, T t) { t.job->marathon.constraints = v.texts; }},
  {.path = "marathon.fetch", .type = Type::kTexts, .most = 4096, .fallback = "none",
   .doc = "URIs that Mesos fetches into each task's sandbox.",
   .apply = [](V v, T t) { t.job->marathon.fetch = v.texts; }},
  {.path = "marathon.accepted_roles", .type = Type::kTexts, .most = 256, .fallback = "Marathon's default",
   .doc = "Mesos resource roles whose offers are accepted: [\"*\", slave_public].",
   .apply = [](V v, T t) { t.job->marathon.accepted_roles = v.texts; }},
  {.path = "marathon.parameters", .type = Type::kTexts, .most = 1024, .fallback = "none",
   .doc = "With the Docker containerizer: options of docker run, [ipc=host, ulimit=nofile=65536].",
   .apply = [](V v, T t) { t.job->marathon.parameters = v.texts; }},
  {.path = "marathon.secrets", .type = Type::kVariables, .fallback = "none",
   .doc = "Variables of all tasks with values from the cluster's secret store: {AWS_KEY: training/aws}.",
   .apply = [](V v, T t) { t.job->marathon.secrets = v.map; }},
  {.path = "marathon.backoff", .type = Type::kDuration, .most = kHour, .fallback = "1s",
   .doc = "Delay before Marathon replaces a lost Mesos task; grows by 15 % each time.",
   .apply = [](V v, T t) { t.job->marathon.backoff = v.duration; }},
  {.path = "marathon.longest_backoff", .type = Type::kDuration, .most = kHour, .fallback = "1m",
   .doc = "Maximum delay.",
   .apply = [](V v, T t) { t.job->marathon.longest_backoff = v.duration; }},
  {.path = "marathon.unreachable", .type = Type::kDuration, .most = kYear, .fallback = "0s",
   .doc = "Time that an unreachable agent may be absent before its tasks are replaced. Mesos itself takes "
          "75 s to report an agent unreachable, by default.",
   .apply = [](V v, T t) { t.job->marathon.unreachable = v.duration; }},
  {.path = "marathon.port", .type = Type::kInteger, .most = 65535, .fallback = "0, any offered port",
   .doc = "Port of the coordinator; it then runs only on an agent with this port free.",
   .apply = [](V v, T t) { t.job->marathon.port = static_cast<int>(v.integer); }},
  {.path = "marathon.privileged", .type = Type::kChoice, .choices = "true|false", .fallback = "false",
   .doc = "With the Docker containerizer: whether containers are privileged.",
   .apply = [](V v, T t) { t.job->marathon.privileged = v.text == "true"; }},
  {.path = "marathon.force_pull", .type = Type::kChoice, .choices = "true|false", .fallback = "false",
   .doc = "Whether the image is pulled even if the agent has it.",
   .apply = [](V v, T t) { t.job->marathon.force_pull = v.text == "true"; }},

  {.path = "schedule", .type = Type::kSection, .fallback = "none: runs only on demand",
   .doc = "Times of recurring runs, which `shoal schedule FILE` registers with a server, for every engine "
          "([triggers.md](triggers.md)), or with a cluster that has schedules (Marathon's Metronome). `shoal run` and "
          "`shoal submit` run the job once, now."},
  {.path = "schedule.cron", .type = Type::kText, .most = 256, .fallback = "required",
   .doc = "Minute, hour, day of the month, month, day of the week (0 and 7 are Sunday) in the syntax of "
          "crontab(5): `30 2 * * 1-5`, `*/10 * * * *`.",
   .apply = [](V v, T t) { t.job->schedule.cron = v.text; }},
  {.path = "schedule.time_zone", .type = Type::kText, .most = 64, .fallback = "UTC",
   .doc = "Time zone of `cron`: a name of the IANA database, Europe/Berlin.",
   .apply = [](V v, T t) { t.job->schedule.time_zone = v.text; }},
  {.path = "schedule.concurrency", .type = Type::kChoice, .choices = "forbid|allow|replace", .fallback = "forbid",
   .doc = "What happens when a run is due while an earlier one is unfinished: it is skipped, started beside it, or, "
          "on a server, the earlier one is stopped.",
   .apply = [](V v, T t) { t.job->schedule.concurrency = Pick(kConcurrencies, v); }},
  {.path = "schedule.missed", .type = Type::kChoice, .choices = "run_once|skip", .fallback = "run_once",
   .doc = "On a server: whether one run starts, or none, after the server was down when runs were due.",
   .apply = [](V v, T t) { t.job->schedule.missed = Pick(kMissedRuns, v); }},
  {.path = "schedule.start_deadline", .type = Type::kDuration, .least = 1000, .most = kYear, .fallback = "the scheduler's default",
   .doc = "A run that has not started within this time is skipped; whole seconds.",
   .apply = [](V v, T t) { t.job->schedule.start_deadline = v.duration; }},
  {.path = "schedule.enabled", .type = Type::kChoice, .choices = "true|false", .fallback = "true",
   .doc = "`false` keeps the schedule without starting runs.",
   .apply = [](V v, T t) { t.job->schedule.enabled = v.text == "true"; }},
  {.path = "schedule.secrets", .type = Type::kVariables, .fallback = "none",
   .doc = "Variables of the command that runs the job each time, with values from the cluster's secret "
          "store: {SHOAL_MARATHON_TOKEN: ml/marathon-token}. The job's tasks do not get them.",
   .apply = [](V v, T t) { t.job->schedule.secrets = v.map; }},
};
// clang-format on

}  // namespace

std::span<const Field> Fields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all(std::begin(kFields), std::end(kFields));
    const std::vector<Field> of_roles = RoleKubernetesFields();
    const auto place = std::ranges::find(all, std::string_view("roles.*.health"), &Field::path);
    all.insert(place, of_roles.begin(), of_roles.end());
    const std::vector<Field> triggers = TriggerFields();
    all.insert(std::ranges::find(all, std::string_view("schedule"), &Field::path), triggers.begin(),
               triggers.end());
    const std::vector<Field> of_jobs = KubernetesFields();
    all.insert(all.end(), of_jobs.begin(), of_jobs.end());
    return all;
  }();
  return fields;
}

const Field* FindField(std::string_view path) {
  const auto found = std::ranges::find(Fields(), path, &Field::path);
  return found == Fields().end() ? nullptr : &*found;
}

std::vector<std::string> FieldsBelow(std::string_view section) {
  std::vector<std::string> names;
  const std::string prefix = section.empty() ? std::string() : std::string(section) + ".";
  for (const Field& field : Fields()) {
    if (!field.path.starts_with(prefix)) continue;
    const std::string_view rest = field.path.substr(prefix.size());
    if (rest.find('.') == std::string_view::npos) names.emplace_back(rest);
  }
  return names;
}

}  // namespace shoal::job
