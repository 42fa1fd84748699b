#include "job/file/fields.h"

#include <algorithm>

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
   .fallback = "the file's name without its ending",
   .doc = "What the job is called in lists and logs; it need not be unique.",
   .apply = [](V v, T t) { t.job->name = v.text; }},
  {.path = "framework", .type = Type::kChoice,
   .choices = "shoal|ps-lite|tensorflow|pytorch|mpi|horovod|rabit|spark|jax|paddle|generic",
   .fallback = "generic",
   .doc = "Which cluster description the programs expect, and what role names mean. `shoal` runs the "
          "built-in trainers, `generic` any program that reads the SHOAL_ variables.",
   .apply = [](V v, T t) { t.job->framework = Pick(kFrameworks, v); }},
  {.path = "queue", .type = Type::kName, .most = 63, .fallback = "default",
   .doc = "The queue that the job waits in. There is one so far: another name is told, and without effect.",
   .apply = [](V v, T t) { t.job->queue = v.text; }},
  {.path = "priority", .type = Type::kInteger, .least = -1000, .most = 1000, .fallback = "0",
   .doc = "Larger goes first within a queue whose policy knows priorities. The only queue so far is first in, "
          "first out: a priority is told, and without effect.",
   .apply = [](V v, T t) { t.job->priority = static_cast<int>(v.integer); }},
  {.path = "image", .type = Type::kText, .most = 1024, .fallback = "none",
   .doc = "The container image that the tasks run in, on docker, kubernetes and marathon. A role's command "
          "replaces the image's ENTRYPOINT and CMD; a role without one starts these, with its `args` in place of the CMD, "
          "on the engine docker, which asks the daemon for them. The engines local and slurm do without it, and say so.",
   .apply = [](V v, T t) { t.job->image = v.text; }},
  {.path = "container", .type = Type::kSection, .fallback = "see its fields",
   .doc = "What the containers of the tasks are made with beside `image`, on engines that have containers "
          "(docs/engines/docker.md). What an engine does nothing with is told before the job starts."},
  {.path = "container.volumes", .type = Type::kTexts, .most = 256, .fallback = "none",
   .doc = "What of the machine the tasks see: `SOURCE:TARGET`, with `:ro` behind it read only. SOURCE is a path "
          "beside the job file or absolute, TARGET absolute. Sources of `data` and parents of `outputs` are there "
          "without being named.",
   .apply = [](V v, T t) { t.job->container.volumes = v.texts; }},
  {.path = "container.work_dir", .type = Type::kText, .most = 4096, .fallback = "the image's own",
   .doc = "Where the programs start; without an image they start in the job file's directory.",
   .apply = [](V v, T t) { t.job->container.work_dir = v.text; }},
  {.path = "container.user", .type = Type::kText, .most = 256, .fallback = "who runs the job",
   .doc = "Who the programs are: UID or UID:GID, in numbers. They must be able to read the job's directory.",
   .apply = [](V v, T t) { t.job->container.user = v.text; }},
  {.path = "container.pids", .type = Type::kInteger, .least = 16, .most = 4'194'304,
   .fallback = "no limit",
   .doc = "How many processes and threads a task may have.",
   .apply = [](V v, T t) { t.job->container.pids = v.integer; }},
  {.path = "container.shm", .type = Type::kSize, .least = 1 << 20,
   .most = static_cast<double>(kMaxMemoryBytes), .fallback = "1Gi",
   .doc = "How large a task's /dev/shm may become; PyTorch's data loaders use it.",
   .apply = [](V v, T t) { t.job->container.shm_bytes = v.integer; }},
  {.path = "container.network", .type = Type::kChoice, .choices = "host|job", .fallback = "host",
   .doc = "What the tasks see of the network: this machine's, or one of the job's own, in which they find each "
          "other as ROLE-INDEX and nobody else (on Docker).",
   .apply = [](V v, T t) { t.job->container.own_network = v.text == "job"; }},
  {.path = "files", .type = Type::kText, .most = 4096, .fallback = "none",
   .doc = "Without an image: the directory that is shipped to every task, which starts in a copy of its own "
          "(docs/files.md). `.shoalignore` leaves files out; a `requirements.txt` makes a virtual environment.",
   .apply = [](V v, T t) { t.job->files = v.text; }},
  {.path = "command", .type = Type::kCommand, .most = 1000,
   .fallback = "none; framework shoal has its own for the roles server and worker",
   .doc = "The program and its arguments, for every role without a command of its own. No shell is "
          "involved: for one write `[sh, -c, \"...\"]`. `@shoal` as the first word is this program.",
   .apply = [](V v, T t) { t.job->command = v.texts; }},
  {.path = "env", .type = Type::kVariables, .fallback = "none",
   .doc = "Environment variables of every task. The variables that Shoal sets itself are refused.",
   .apply = [](V v, T t) { t.job->env = v.map; }},
  {.path = "learn", .type = Type::kLearn, .fallback = "none",
   .doc = "Framework shoal: `algorithm` and its parameters, for example `{algorithm: word2vec, dim: "
          "100}`. The algorithm checks them itself.",
   .apply = [](V v, T t) { t.job->learn = v.learn; }},

  {.path = "data", .type = Type::kSections, .shorthand = "source", .fallback = "none",
   .doc = "The data sets, by name. `train: path` is short for `train: {source: path}`. Framework "
          "shoal takes `train`, and (but for word2vec) `test`, to measure the model with. Others are told nothing of it."},
  {.path = "data.*.source", .type = Type::kTexts, .most = 100'000, .fallback = "required",
   .doc = "A path, a file:// URL, or with framework shoal a pattern, such as news/*.txt.zst, or a list of them, in the order in which they make up the data. A pattern becomes the files that match it where the job is given, in the order of their names.",
   .apply = [](V v, T t) { t.data->sources = v.texts; }},
  {.path = "data.*.format", .type = Type::kChoice,
   .choices = "text|libsvm|libffm|csv|json|parquet|tfrecord", .fallback = "text",
   .doc = "What the data is; with framework shoal only.",
   .apply = [](V v, T t) { t.data->format = v.text; }},
  {.path = "data.*.shard_by", .type = Type::kRole,
   .fallback = "worker, or the first role that follows nobody",
   .doc = "The role among whose tasks the data is split, exactly and without overlap; with framework shoal only.",
   .apply = [](V v, T t) { t.data->shard_by = v.text; }},

  {.path = "roles", .type = Type::kSections, .shorthand = "replicas",
   .fallback = "one worker for framework shoal, else one task of a role named task",
   .doc = "The kinds of tasks, by name (lower-case letters, digits and '-'). `worker: 4` is short for "
          "`worker: {replicas: 4}`."},
  {.path = "roles.*.replicas", .type = Type::kInteger, .most = kMaxReplicas, .fallback = "1",
   .doc = "How many tasks of this role there are; where `min` or `max` is given, at first.",
   .apply = [](V v, T t) { t.role->replicas = static_cast<int>(v.integer); }},
  {.path = "roles.*.min", .type = Type::kInteger, .most = kMaxReplicas, .fallback = "replicas",
   .doc = "With how many of them the job may start or go on: members that do not come, or fail for "
          "good, do not end it.",
   .apply = [](V v, T t) { t.role->min_replicas = static_cast<int>(v.integer); }},
  {.path = "roles.*.max", .type = Type::kInteger, .most = kMaxReplicas, .fallback = "replicas",
   .doc = "How many of them `shoal scale` may make of it.",
   .apply = [](V v, T t) { t.role->max_replicas = static_cast<int>(v.integer); }},
  {.path = "roles.*.processes", .type = Type::kInteger, .least = 1, .most = 1024, .fallback = "1",
   .doc = "How many processes one task starts, for example one a GPU.",
   .apply = [](V v, T t) { t.role->processes = static_cast<int>(v.integer); }},
  {.path = "roles.*.resources", .type = Type::kSection, .fallback = "no limits",
   .doc = "What one task may use."},
  {.path = "roles.*.resources.cpu", .type = Type::kNumber, .most = kMaxCpus, .fallback = "no limit",
   .doc = "Cores; 0.5 is half of one.",
   .apply = [](V v, T t) { t.role->resources.cpu = v.number; }},
  {.path = "roles.*.resources.memory", .type = Type::kSize, .least = 1 << 20,
   .most = static_cast<double>(kMaxMemoryBytes), .fallback = "no limit",
   .doc = "Memory of the task's whole process tree.",
   .apply = [](V v, T t) { t.role->resources.memory_bytes = v.integer; }},
  {.path = "roles.*.resources.gpu", .type = Type::kInteger, .most = kMaxGpus, .fallback = "0",
   .doc = "Whole GPUs, of its own: CUDA_VISIBLE_DEVICES names them. A task that asks for none sees none.",
   .apply = [](V v, T t) { t.role->resources.gpu = static_cast<int>(v.integer); }},
  {.path = "roles.*.resources.requests", .type = Type::kSection, .fallback = "the limits", .doc = "What is set aside for it."},
  {.path = "roles.*.resources.requests.cpu", .type = Type::kNumber, .most = kMaxCpus, .fallback = "the limit",
   .doc = "Cores that are set aside.",
   .apply = [](V v, T t) { t.role->resources.cpu_request = v.number; }},
  {.path = "roles.*.resources.requests.memory", .type = Type::kSize, .least = 1 << 20,
   .most = static_cast<double>(kMaxMemoryBytes), .fallback = "the limit",
   .doc = "Memory that is set aside.",
   .apply = [](V v, T t) { t.role->resources.memory_request = v.integer; }},
  {.path = "roles.*.command", .type = Type::kCommand, .most = 1000, .fallback = "the job's",
   .doc = "The program and its arguments, for this role.",
   .apply = [](V v, T t) { t.role->command = v.texts; }},
  {.path = "roles.*.args", .type = Type::kTexts, .most = 1000, .fallback = "none; of an image's own entry point the image's",
   .doc = "Arguments behind the command, or behind the entry point of the image where there is no command.",
   .apply = [](V v, T t) { t.role->args = v.texts; }},
  {.path = "roles.*.env", .type = Type::kVariables, .fallback = "none",
   .doc = "Environment variables of this role's tasks, over the job's.",
   .apply = [](V v, T t) { t.role->env = v.map; }},
  {.path = "roles.*.ports", .type = Type::kPorts, .most = 16,
   .fallback = "none; those of the framework's own roles, see docs/frameworks.md",
   .doc = "The ports that each task gets, by name: SHOAL_PORT is the first, SHOAL_PORT_GRPC that of "
          "the name grpc. `{name: grpc, plain: true}` instead of a name says that the program sets "
          "neither SO_REUSEADDR nor SO_REUSEPORT.",
   .apply = [](V v, T t) { t.role->ports = v.ports; }},
  {.path = "roles.*.follows", .type = Type::kRole,
   .fallback = "nobody; the framework's own roles have presets, see docs/frameworks.md",
   .doc = "The role after whose last task this one is stopped; `~` for nobody.",
   .apply = [](V v, T t) { t.role->follows = v.text; }},
  {.path = "roles.*.restart", .type = Type::kSection, .fallback = "see its fields",
   .doc = "When a task that ended badly is started again."},
  {.path = "roles.*.restart.when", .type = Type::kChoice, .choices = "never|transient|always",
   .fallback = "transient",
   .doc = "`transient`: after a signal, a lost machine and one out-of-memory, but not after an exit "
          "code from 1 to 127. `always`: after every end but exit 0.",
   .apply = [](V v, T t) { t.role->restart.when = Pick(kRestartWhens, v); }},
  {.path = "roles.*.restart.limit", .type = Type::kInteger, .most = 1000, .fallback = "3",
   .doc = "How often, over the life of the job.",
   .apply = [](V v, T t) { t.role->restart.limit = static_cast<int>(v.integer); }},
  {.path = "roles.*.restart.scope", .type = Type::kChoice, .choices = "task|role|job",
   .fallback = "job for pytorch, mpi, horovod, rabit and ps-lite, else task",
   .doc = "What is started again with it.",
   .apply = [](V v, T t) { t.role->restart.scope = Pick(kRestartScopes, v); }},
  {.path = "roles.*.restart.backoff", .type = Type::kDuration, .most = kHour, .fallback = "500ms",
   .doc = "The wait before the first restart; it doubles with each.",
   .apply = [](V v, T t) { t.role->restart.backoff = v.duration; }},
  {.path = "roles.*.restart.backoff_max", .type = Type::kDuration, .most = kHour, .fallback = "30s",
   .doc = "The longest such wait.",
   .apply = [](V v, T t) { t.role->restart.backoff_max = v.duration; }},
  {.path = "roles.*.on_exit", .type = Type::kExitRules, .most = 64, .fallback = "none",
   .doc = "What an end leads to, instead of what `restart` says; the first rule that matches counts. "
          "`code` is an exit code, a range such as 128-255, a signal such as SIGKILL, `signal` for "
          "any, `out-of-memory` or `lost`; a code from 129 on is also the signal that a shell means "
          "by it. `retry` starts the task again within `restart.limit`, `fail` does not, `ignore` "
          "takes the end for a good one, `restart_job` starts all tasks again, `exclude_host` does what "
          "`retry` does and starts no program of the role on that host any more.",
   .apply = [](V v, T t) { t.role->on_exit = v.exit_rules; }},
  {.path = "roles.*.on_log", .type = Type::kLogRules, .most = 64, .fallback = "none",
   .doc = "What a line of output leads to: the task is stopped, and `retry`, `fail`, `restart_job` "
          "or `exclude_host` is done whatever its exit code. `line` is the whole line, `*` stands for any text.",
   .apply = [](V v, T t) { t.role->on_log = v.log_rules; }},
  {.path = "roles.*.checkpoint_signal", .type = Type::kChoice,
   .choices = "none|SIGUSR1|SIGUSR2|SIGHUP|SIGINT", .fallback = "none",
   .doc = "What tells its programs to save when the job is suspended: they then have `limits.stop_grace` to "
          "save and end, and as long again after SIGTERM.",
   .apply = [](V v, T t) { t.role->checkpoint_signal = Pick(kCheckpointSignals, v); }},
  {.path = "roles.*.after", .type = Type::kSection, .fallback = "nobody",
   .doc = "Which roles' programs must run before this role's are started, at every start. All tasks "
          "are there and have their ports before."},
  {.path = "roles.*.after.role", .type = Type::kRoles, .most = 256, .fallback = "required",
   .doc = "The role or roles to wait for.",
   .apply = [](V v, T t) { t.role->after.roles = v.texts; }},
  {.path = "roles.*.after.when", .type = Type::kChoice, .choices = "started|ready|ended",
   .fallback = "ready",
   .doc = "Until all their tasks have been started, are `ready` (a role that does not say when that "
          "is, is ready when started) or have ended.",
   .apply = [](V v, T t) { t.role->after.when = Pick(kAfterWhens, v); }},
  {.path = "roles.*.ready", .type = Type::kSection, .fallback = "as soon as it runs",
   .doc = "How its launcher sees that a task is ready: exactly one of `tcp`, `http`, `command`, `log`."},
  {.path = "roles.*.ready.tcp", .type = Type::kName, .most = 15, .fallback = "-",
   .doc = "When the port of this name takes connections.",
   .apply = [](V v, T t) { SetReady(&t.role->ready, ReadyBy::kTcp, v.text); }},
  {.path = "roles.*.ready.http", .type = Type::kSection, .fallback = "-",
   .doc = "When a GET is answered with a status from 200 to 399."},
  {.path = "roles.*.ready.http.port", .type = Type::kName, .most = 15, .fallback = "required",
   .doc = "At the port of this name.",
   .apply = [](V v, T t) { SetReady(&t.role->ready, ReadyBy::kHttp, v.text); }},
  {.path = "roles.*.ready.http.path", .type = Type::kText, .most = 1024, .fallback = "/",
   .doc = "Of this path.",
   .apply = [](V v, T t) { t.role->ready.path = v.text; }},
  {.path = "roles.*.ready.command", .type = Type::kCommand, .most = 1000, .fallback = "-",
   .doc = "When this command, which gets the task's environment, exits with 0.",
   .apply = [](V v, T t) {
     t.role->ready.by = ReadyBy::kCommand;
     t.role->ready.command = v.texts;
   }},
  {.path = "roles.*.ready.log", .type = Type::kText, .most = 1024, .fallback = "-",
   .doc = "When a line of the task's output is this; `*` stands for any text.",
   .apply = [](V v, T t) {
     t.role->ready.by = ReadyBy::kLog;
     t.role->ready.line = v.text;
   }},
  {.path = "roles.*.ready.every", .type = Type::kDuration, .least = 10, .most = kHour,
   .fallback = "250ms",
   .doc = "The time between two tries.",
   .apply = [](V v, T t) { t.role->ready.every = v.duration; }},
  {.path = "roles.*.ready.timeout", .type = Type::kDuration, .most = kYear, .fallback = "5m",
   .doc = "A task that is not ready by then is killed, which is a transient end; 0: it may take "
          "for ever.",
   .apply = [](V v, T t) { t.role->ready.timeout = v.duration; }},
  {.path = "roles.*.slurm", .type = Type::kSection, .fallback = "the job's",
   .doc = "What this role asks Slurm for in place of what the job does. Roles that ask for other things than others "
          "get other nodes, in one heterogeneous allocation (docs/engines/slurm.md)."},
  {.path = "roles.*.slurm.partition", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.partition`",
   .doc = "The partition, or several with commas between.",
   .apply = [](V v, T t) { t.role->slurm.partition = v.text; }},
  {.path = "roles.*.slurm.account", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.account`",
   .doc = "The account that is charged for its nodes.",
   .apply = [](V v, T t) { t.role->slurm.account = v.text; }},
  {.path = "roles.*.slurm.qos", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.qos`",
   .doc = "The quality of service.",
   .apply = [](V v, T t) { t.role->slurm.qos = v.text; }},
  {.path = "roles.*.slurm.constraint", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.constraint`",
   .doc = "Features that its nodes must have.",
   .apply = [](V v, T t) { t.role->slurm.constraint = v.text; }},
  {.path = "roles.*.slurm.reservation", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.reservation`",
   .doc = "The reservation that its nodes are in.",
   .apply = [](V v, T t) { t.role->slurm.reservation = v.text; }},
  {.path = "roles.*.slurm.gpu_type", .type = Type::kText, .most = 256, .fallback = "the job's `slurm.gpu_type`",
   .doc = "Which GPUs, as the cluster calls them.",
   .apply = [](V v, T t) { t.role->slurm.gpu_type = v.text; }},
  {.path = "roles.*.slurm.nodes", .type = Type::kInteger, .most = kMaxTasks, .fallback = "0, as many as it takes",
   .doc = "On how many nodes the roles that ask alike are spread.",
   .apply = [](V v, T t) { t.role->slurm.nodes = static_cast<int>(v.integer); }},
  {.path = "roles.*.slurm.options", .type = Type::kTexts, .most = 256, .fallback = "the job's `slurm.options`",
   .doc = "More options of sbatch for these nodes, as they are, in place of the job's.",
   .apply = [](V v, T t) { t.role->slurm.options = v.texts; }},

  {.path = "roles.*.health", .type = Type::kSection, .fallback = "never asked",
   .doc = "How Marathon sees, as long as a task's program runs, that it is well; where it is not, Marathon ends its "
          "Mesos task and makes another: exactly one of `tcp`, `http`, `command`. Other engines do not ask."},
  {.path = "roles.*.health.tcp", .type = Type::kName, .most = 15, .fallback = "-",
   .doc = "Well while the port of this name takes connections.",
   .apply = [](V v, T t) { SetReady(&t.role->health, ReadyBy::kTcp, v.text); }},
  {.path = "roles.*.health.http", .type = Type::kSection, .fallback = "-",
   .doc = "Well while a GET is answered with a status from 200 to 399."},
  {.path = "roles.*.health.http.port", .type = Type::kName, .most = 15, .fallback = "required",
   .doc = "At the port of this name.",
   .apply = [](V v, T t) { SetReady(&t.role->health, ReadyBy::kHttp, v.text); }},
  {.path = "roles.*.health.http.path", .type = Type::kText, .most = 1024, .fallback = "/",
   .doc = "Of this path.",
   .apply = [](V v, T t) { t.role->health.path = v.text; }},
  {.path = "roles.*.health.command", .type = Type::kCommand, .most = 1000, .fallback = "-",
   .doc = "Well while this command, which gets the program's environment, exits with 0.",
   .apply = [](V v, T t) {
     t.role->health.by = ReadyBy::kCommand;
     t.role->health.command = v.texts;
   }},
  {.path = "roles.*.health.grace", .type = Type::kDuration, .most = kYear, .fallback = "5m",
   .doc = "So long after each start of the program it is not asked.",
   .apply = [](V v, T t) { t.role->health.grace = v.duration; }},
  {.path = "roles.*.health.every", .type = Type::kDuration, .least = 1000, .most = kHour, .fallback = "60s",
   .doc = "The time between two questions, in whole seconds.",
   .apply = [](V v, T t) { t.role->health.every = v.duration; }},
  {.path = "roles.*.health.timeout", .type = Type::kDuration, .least = 1000, .most = kHour, .fallback = "20s",
   .doc = "Who has not answered by then is not well; whole seconds.",
   .apply = [](V v, T t) { t.role->health.timeout = v.duration; }},
  {.path = "roles.*.health.failures", .type = Type::kInteger, .least = 1, .most = 1000, .fallback = "3",
   .doc = "So many times in a row, and it is ended.",
   .apply = [](V v, T t) { t.role->health.failures = static_cast<int>(v.integer); }},

  {.path = "success", .type = Type::kSection,
   .fallback = "all tasks of worker, or if there is no such role, of all roles that follow nobody; with "
               "tensorflow the chief's, or worker 0's beside parameter servers; with pytorch, "
               "horovod and rabit of all that are ranked; with mpi the launcher's",
   .doc = "When the job has succeeded: exactly one of `all`, `any`, `first`, `count`."},
  {.path = "success.all", .type = Type::kRoles, .fallback = "-",
   .doc = "When every task of these roles has ended well.",
   .apply = [](V v, T t) { SetRule(&t.job->success, SuccessRule::kAll, v.texts); }},
  {.path = "success.any", .type = Type::kRoles, .fallback = "-",
   .doc = "When one task of these roles has ended well.",
   .apply = [](V v, T t) { SetRule(&t.job->success, SuccessRule::kAny, v.texts); }},
  {.path = "success.first", .type = Type::kRole, .fallback = "-",
   .doc = "When task 0 of this role has ended well; a task that fails for good before fails the job.",
   .apply = [](V v, T t) { SetRule(&t.job->success, SuccessRule::kFirst, {v.text}); }},
  {.path = "success.count", .type = Type::kInteger, .least = 1, .most = kMaxTasks, .fallback = "-",
   .doc = "When so many tasks of the roles in `of` have ended well.",
   .apply = [](V v, T t) {
     t.job->success.rule = SuccessRule::kCount;
     t.job->success.count = static_cast<int>(v.integer);
   }},
  {.path = "success.of", .type = Type::kRoles, .fallback = "worker, or all that follow nobody",
   .doc = "With `count`: whose tasks count.",
   .apply = [](V v, T t) { t.job->success.roles = v.texts; }},

  {.path = "checkpoint", .type = Type::kSection, .fallback = "none",
   .doc = "Checkpoints of parameter servers: framework shoal's, and `@shoal ps-server`; not on kubernetes."},
  {.path = "checkpoint.every", .type = Type::kDuration, .most = kYear, .fallback = "0, none",
   .doc = "The time between two.",
   .apply = [](V v, T t) { t.job->checkpoint.every = v.duration; }},
  {.path = "checkpoint.keep", .type = Type::kInteger, .least = 1, .most = 1000, .fallback = "2",
   .doc = "How many of the last ones are kept.",
   .apply = [](V v, T t) { t.job->checkpoint.keep = static_cast<int>(v.integer); }},

  {.path = "store", .type = Type::kText, .most = 4096, .fallback = "the embedded one",
   .doc = "Reserved: a job that has it is refused. All of a job is kept below SHOAL_HOME.",
   .apply = [](V v, T t) { t.job->store = v.text; }},

  {.path = "limits", .type = Type::kSection, .fallback = "see its fields",
   .doc = "How long things may take; 0 means no limit where 0 is allowed."},
  {.path = "limits.gather", .type = Type::kDuration, .least = 100, .most = kYear, .fallback = "5m",
   .doc = "Until all tasks have joined; then the job gives everything back and queues again.",
   .apply = [](V v, T t) { t.job->limits.gather = v.duration; }},
  {.path = "limits.deadline", .type = Type::kDuration, .most = kYear, .fallback = "0, none",
   .doc = "For the whole run.",
   .apply = [](V v, T t) { t.job->limits.deadline = v.duration; }},
  {.path = "limits.stall", .type = Type::kDuration, .most = kYear, .fallback = "10m",
   .doc = "A job of which no task has printed or reported anything, computed or used the network for so "
          "long is said to be stalled; 0: never, else at least 5s.",
   .apply = [](V v, T t) { t.job->limits.stall = v.duration; }},
  {.path = "limits.on_stall", .type = Type::kChoice, .choices = "report|restart|fail",
   .fallback = "report",
   .doc = "What is done then, after it is recorded what every process waits for: nothing more, all tasks "
          "are started again (as often as the largest `restart.limit` of the roles says), or the job fails.",
   .apply = [](V v, T t) { t.job->limits.on_stall = Pick(kOnStalls, v); }},
  {.path = "limits.stop_grace", .type = Type::kDuration, .most = kHour, .fallback = "10s",
   .doc = "Between SIGTERM and SIGKILL.",
   .apply = [](V v, T t) { t.job->limits.stop_grace = v.duration; }},
  {.path = "limits.restarts", .type = Type::kInteger, .most = 1'000'000, .fallback = "no limit",
   .doc = "How many restarts of all tasks together, over the life of the job, beside each role's "
          "`restart.limit`; a death after the last of them fails the job.",
   .apply = [](V v, T t) { t.job->limits.restarts = static_cast<int>(v.integer); }},
  {.path = "limits.coordinator_timeout", .type = Type::kDuration, .least = 100, .most = kHour,
   .fallback = "30s",
   .doc = "How long a task goes on without its coordinator.",
   .apply = [](V v, T t) { t.job->limits.coordinator_timeout = v.duration; }},
  {.path = "limits.keep_records", .type = Type::kDuration, .most = 100 * kYear,
   .fallback = "0, until `shoal jobs --prune`",
   .doc = "How long after its end the job's record, logs and what else is in its directory are kept.",
   .apply = [](V v, T t) { t.job->limits.keep_records = v.duration; }},

  {.path = "on_controller_loss", .type = Type::kChoice, .choices = "stop|keep",
   .fallback = "stop",
   .doc = "What becomes of the job when its controller, the command that runs it, dies: `keep` lets it go on to its end.",
   .apply = [](V v, T t) { t.job->on_controller_loss = Pick(kControllerLosses, v); }},
  {.path = "outputs", .type = Type::kTextMap, .fallback = "none",
   .doc = "Named directories that the job writes; SHOAL_OUTPUT is the one named model, or the only "
          "one. Without any, each attempt of each task has a SHOAL_OUTPUT of its own, see `shoal outputs`.",
   .apply = [](V v, T t) { t.job->outputs = v.map; }},

  {.path = "slurm", .type = Type::kSection, .fallback = "see its fields",
   .doc = "What `--engine slurm` asks Slurm for beyond the roles' resources; other engines do not look at it."},
  {.path = "slurm.partition", .type = Type::kText, .most = 256, .fallback = "Slurm's default",
   .doc = "The partition, or several with commas between.",
   .apply = [](V v, T t) { t.job->slurm.partition = v.text; }},
  {.path = "slurm.account", .type = Type::kText, .most = 256, .fallback = "the user's default",
   .doc = "The account that is charged.",
   .apply = [](V v, T t) { t.job->slurm.account = v.text; }},
  {.path = "slurm.qos", .type = Type::kText, .most = 256, .fallback = "the account's default",
   .doc = "The quality of service.",
   .apply = [](V v, T t) { t.job->slurm.qos = v.text; }},
  {.path = "slurm.constraint", .type = Type::kText, .most = 256, .fallback = "none",
   .doc = "Features that the nodes must have, as `sbatch --constraint` takes them.",
   .apply = [](V v, T t) { t.job->slurm.constraint = v.text; }},
  {.path = "slurm.reservation", .type = Type::kText, .most = 256, .fallback = "none",
   .doc = "The reservation to run in.",
   .apply = [](V v, T t) { t.job->slurm.reservation = v.text; }},
  {.path = "slurm.gpu_type", .type = Type::kText, .most = 256, .fallback = "any",
   .doc = "Which GPUs, as the cluster calls them: a100.",
   .apply = [](V v, T t) { t.job->slurm.gpu_type = v.text; }},
  {.path = "slurm.nodes", .type = Type::kInteger, .most = kMaxTasks, .fallback = "0, as many as it takes",
   .doc = "On how many nodes the job is spread.",
   .apply = [](V v, T t) { t.job->slurm.nodes = static_cast<int>(v.integer); }},
  {.path = "slurm.time", .type = Type::kDuration, .most = kYear, .fallback = "the partition's",
   .doc = "How long the allocation lasts. Shortly before its end the tasks save, and the job goes on in "
          "another one.",
   .apply = [](V v, T t) { t.job->slurm.time = v.duration; }},
  {.path = "slurm.save_before", .type = Type::kDuration, .least = 1000, .most = 12 * kHour, .fallback = "2m",
   .doc = "How long before that end the tasks are told to save.",
   .apply = [](V v, T t) { t.job->slurm.save_before = v.duration; }},
  {.path = "slurm.requeue", .type = Type::kChoice, .choices = "true|false", .fallback = "true",
   .doc = "Whether Slurm starts the job again after the loss of its first node, or the end of its time.",
   .apply = [](V v, T t) { t.job->slurm.requeue = v.text == "true"; }},
  {.path = "slurm.exclusive", .type = Type::kChoice, .choices = "true|false", .fallback = "false",
   .doc = "Whether other jobs are kept off its nodes.",
   .apply = [](V v, T t) { t.job->slurm.exclusive = v.text == "true"; }},
  {.path = "slurm.options", .type = Type::kTexts, .most = 256, .fallback = "none",
   .doc = "More options of sbatch, as they are: [--licenses=matlab, --mail-type=END]. `--array`, `--wrap`, `--chdir` and "
          "`--test-only` are refused: with them it would be another job.",
   .apply = [](V v, T t) { t.job->slurm.options = v.texts; }},

  {.path = "marathon", .type = Type::kSection, .fallback = "see its fields",
   .doc = "What `--engine marathon` asks Marathon for beyond the roles' resources; other engines ignore it."},
  {.path = "marathon.url", .type = Type::kText, .most = 1024, .fallback = "$SHOAL_MARATHON_URL",
   .doc = "Where Marathon is: http://leader.mesos:8080, or https://HOST/service/marathon. Credentials stand "
          "elsewhere: SHOAL_MARATHON_TOKEN, SHOAL_MARATHON_USER, or a file that SHOAL_MARATHON_CREDENTIALS names.",
   .apply = [](V v, T t) { t.job->marathon.url = v.text; }},
  {.path = "marathon.group", .type = Type::kText, .most = 256, .fallback = "/shoal",
   .doc = "The group in which each job gets a group of its own.",
   .apply = [](V v, T t) { t.job->marathon.group = v.text; }},
  {.path = "marathon.authorities", .type = Type::kText, .most = 4096, .fallback = "the machine's",
   .doc = "A file of certificates (PEM) by which Marathon's own is checked.",
   .apply = [](V v, T t) { t.job->marathon.authorities = v.text; }},
  {.path = "marathon.containerizer", .type = Type::kChoice, .choices = "none|docker|mesos",
   .fallback = "docker with an image, else none",
   .doc = "Who makes a task's container: Docker, with the host's network, or Mesos itself.",
   .apply = [](V v, T t) { t.job->marathon.containerizer = v.text; }},
  {.path = "marathon.program", .type = Type::kText, .most = 4096, .fallback = "this program's own path",
   .doc = "Where agents find shoal: a path, or a name in the sandbox if `fetch` brings it.",
   .apply = [](V v, T t) { t.job->marathon.program = v.text; }},
  {.path = "marathon.user", .type = Type::kText, .most = 256, .fallback = "Marathon's default",
   .doc = "Who the tasks are on the agents; they must be able to read and write the job's directory.",
   .apply = [](V v, T t) { t.job->marathon.user = v.text; }},
  {.path = "marathon.constraints", .type = Type::kTexts, .most = 256, .fallback = "none",
   .doc = "Where tasks may be, of every role: FIELD:OPERATOR or FIELD:OPERATOR:VALUE, as in "
          "[\"@hostname:UNIQUE\", \"rack:LIKE:r[1-3]\"].",
   .apply = [](V v, T t) { t.job->marathon.constraints = v.texts; }},
  {.path = "marathon.fetch", .type = Type::kTexts, .most = 4096, .fallback = "none",
   .doc = "URIs that Mesos puts into each task's sandbox.",
   .apply = [](V v, T t) { t.job->marathon.fetch = v.texts; }},
  {.path = "marathon.accepted_roles", .type = Type::kTexts, .most = 256, .fallback = "Marathon's default",
   .doc = "Of which of Mesos' resource roles offers are taken: [\"*\", slave_public].",
   .apply = [](V v, T t) { t.job->marathon.accepted_roles = v.texts; }},
  {.path = "marathon.parameters", .type = Type::kTexts, .most = 1024, .fallback = "none",
   .doc = "With the Docker containerizer, options of docker run: [ipc=host, ulimit=nofile=65536].",
   .apply = [](V v, T t) { t.job->marathon.parameters = v.texts; }},
  {.path = "marathon.secrets", .type = Type::kVariables, .fallback = "none",
   .doc = "Variables of all tasks whose values the cluster's secret store has: {AWS_KEY: training/aws}.",
   .apply = [](V v, T t) { t.job->marathon.secrets = v.map; }},
  {.path = "marathon.backoff", .type = Type::kDuration, .most = kHour, .fallback = "1s",
   .doc = "How long Marathon waits before it makes a lost Mesos task again; grows by 15 % each time.",
   .apply = [](V v, T t) { t.job->marathon.backoff = v.duration; }},
  {.path = "marathon.longest_backoff", .type = Type::kDuration, .most = kHour, .fallback = "1m",
   .doc = "To how much it grows.",
   .apply = [](V v, T t) { t.job->marathon.longest_backoff = v.duration; }},
  {.path = "marathon.unreachable", .type = Type::kDuration, .most = kYear, .fallback = "0s",
   .doc = "How long an agent that Mesos no longer hears may be away before its tasks are made elsewhere. "
          "Mesos itself takes 75 s to say so, unless it was told otherwise.",
   .apply = [](V v, T t) { t.job->marathon.unreachable = v.duration; }},
  {.path = "marathon.port", .type = Type::kInteger, .most = 65535, .fallback = "0, any that is offered",
   .doc = "The coordinator's port; then only an agent that has just this one free can have it.",
   .apply = [](V v, T t) { t.job->marathon.port = static_cast<int>(v.integer); }},
  {.path = "marathon.privileged", .type = Type::kChoice, .choices = "true|false", .fallback = "false",
   .doc = "With the Docker containerizer: whether containers are privileged.",
   .apply = [](V v, T t) { t.job->marathon.privileged = v.text == "true"; }},
  {.path = "marathon.force_pull", .type = Type::kChoice, .choices = "true|false", .fallback = "false",
   .doc = "Whether the image is pulled even where it is.",
   .apply = [](V v, T t) { t.job->marathon.force_pull = v.text == "true"; }},

  {.path = "schedule", .type = Type::kSection, .fallback = "none: it runs when somebody runs it",
   .doc = "When the job is run, again and again, once `shoal schedule FILE` has said so to a cluster that has schedules "
          "(Marathon's Metronome). `shoal run` runs it once, now."},
  {.path = "schedule.cron", .type = Type::kText, .most = 256, .fallback = "required",
   .doc = "Minute, hour, day of the month, month, day of the week (0 and 7 are Sunday), as crontab(5) has them: "
          "`30 2 * * 1-5`, `*/10 * * * *`.",
   .apply = [](V v, T t) { t.job->schedule.cron = v.text; }},
  {.path = "schedule.time_zone", .type = Type::kText, .most = 64, .fallback = "UTC",
   .doc = "In which `cron` is meant: a name of the IANA's list, Europe/Berlin.",
   .apply = [](V v, T t) { t.job->schedule.time_zone = v.text; }},
  {.path = "schedule.concurrency", .type = Type::kChoice, .choices = "forbid|allow", .fallback = "forbid",
   .doc = "What happens when it is time and the run before is not over: this one is left out, or runs beside it.",
   .apply = [](V v, T t) { t.job->schedule.concurrency = Pick(kConcurrencies, v); }},
  {.path = "schedule.start_deadline", .type = Type::kDuration, .least = 1000, .most = kYear, .fallback = "the scheduler's own",
   .doc = "A run that has not started so long after its time is given up; whole seconds.",
   .apply = [](V v, T t) { t.job->schedule.start_deadline = v.duration; }},
  {.path = "schedule.enabled", .type = Type::kChoice, .choices = "true|false", .fallback = "true",
   .doc = "`false` keeps the schedule and starts nothing.",
   .apply = [](V v, T t) { t.job->schedule.enabled = v.text == "true"; }},
  {.path = "schedule.secrets", .type = Type::kVariables, .fallback = "none",
   .doc = "Variables of what runs the job each time, and where the cluster's secret store has them: "
          "{SHOAL_MARATHON_TOKEN: ml/marathon-token}. The job's tasks do not get them.",
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
