#include "import/slurm/slurm_script.h"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "import/slurm/slurm_environment.h"
#include "import/slurm/slurm_options.h"
#include "import/slurm/slurm_prelude.h"
#include "import/slurm/slurm_script_info.h"
#include "import/slurm/slurm_script_reports.h"
#include "job/spec/cluster_reference.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

constexpr size_t kMostInArray = 10'000;
constexpr int kMostProcesses = 1024;

bool Has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Clamped to what a task may have.
int64_t MultiplyBounded(int64_t bytes, int count) {
  return bytes > job::kMaxMemoryBytes / count ? job::kMaxMemoryBytes : bytes * count;
}

// Imports one batch script: reads the options, decides between one task, ranked tasks and MPI, and
// makes the roles.
class BatchScript {
 public:
  BatchScript(std::string_view text, const std::string& file, JobBuilder* builder)
      : text_(text), file_(file), builder_(builder), diagnostics_(builder->diagnostics()) {}

  void Run() {
    options_ = ReadSbatchLines(text_, diagnostics_);
    script_ = AnalyzeSlurmScript(text_, diagnostics_);
    if (!diagnostics_->ok()) return;
    ReadCounts();
    if (!diagnostics_->ok()) return;
    ReadName();
    ReadJobOptions();
    MakeRoles();
    const std::string at = "roles." + builder_->job()->roles.front().name + ".command";
    ReportSlurmScript(script_, {!array_.empty(), Is("export"), TextOf("export")}, at, diagnostics_);
    ReportSlurmOptions(options_, builder_->job(), diagnostics_);
  }

 private:
  // ---- options ----

  std::string TextOf(std::string_view name) {
    const auto found = options_.find(name);
    if (found == options_.end()) return "";
    return found->second.value;
  }
  bool Is(std::string_view name) {
    TextOf(name);
    return options_.find(name) != options_.end();
  }
  job::SourceLocation PlaceOf(std::string_view name) const {
    const auto found = options_.find(name);
    return found == options_.end() ? job::SourceLocation{} : found->second.place;
  }
  static std::string PathOf(std::string_view name) { return "--" + std::string(name); }
  void AddError(std::string_view name, const std::string& expected) {
    diagnostics_->AddError(
        PlaceOf(name), PathOf(name),
        "got " + job::PrintableText(options_.find(name)->second.value) + ", expected " + expected);
  }
  void AddLoss(std::string_view name, const std::string& sentence, const std::string& at,
               bool minor = false) {
    if (minor) return diagnostics_->AddMinorLoss(PlaceOf(name), PathOf(name), sentence, at);
    diagnostics_->AddLoss(PlaceOf(name), PathOf(name), sentence, at);
  }

  // The job's name: that of the file without one, as sbatch has it, but without its extension.
  void ReadName() {
    slurm_name_ = TextOf("job-name");
    builder_->SetName(slurm_name_.empty() ? std::filesystem::path(file_).stem().string()
                                          : slurm_name_);
    const std::string& name = builder_->job()->name;
    if (slurm_name_.empty()) slurm_name_ = name;
    if (slurm_name_ != name)
      AddLoss("job-name",
              "the job was called " + job::PrintableText(slurm_name_) + "; its name is " + name +
                  " here, and SLURM_JOB_NAME is kept",
              "name", true);
  }

  // The value of a count option (tasks, nodes …); 0 if absent.
  int CountOf(std::string_view name) {
    const std::string text = TextOf(name);
    if (text.empty()) return 0;
    const auto number = job::ParseInteger(text);
    if (number && *number >= 1 && *number <= job::kMaxTasks) return static_cast<int>(*number);
    AddError(name, "an integer from 1 to " + std::to_string(job::kMaxTasks));
    return 0;
  }
  // 0 means all memory of a node.
  void ReportWholeMemory() {
    if (!Is("mem") || MemoryOf("mem") > 0) return;
    AddLoss("mem",
            "0 asked for all memory of its nodes; not kept: no limit is set, and on Slurm the "
            "partition's default holds; set resources.memory, or slurm.options: [--mem=0]",
            "roles");
  }
  int64_t MemoryOf(std::string_view name) {
    const std::string text = TextOf(name);
    if (text.empty()) return 0;
    const auto bytes = ParseSlurmMemory(text);
    if (!bytes) AddError(name, "megabytes, or a number with K, M, G or T");
    return bytes.value_or(0);
  }
  // Parses "a100:4", "4" or "gpu:a100:4": returns the count and sets the job's GPU type.
  int GpusOf(std::string_view name, std::string text) {
    text = text.substr(0, text.find('('));
    const size_t colon = text.rfind(':');
    const std::string count = colon == std::string::npos ? text : text.substr(colon + 1);
    const auto number = job::ParseInteger(count);
    std::string type = colon == std::string::npos ? "" : text.substr(0, colon);
    if (!number && colon == std::string::npos) type = text;  // "gpu:a100" is one
    if (!number && colon != std::string::npos) AddError(name, "[TYPE:]NUMBER");
    if (!type.empty()) builder_->job()->slurm.gpu_type = type;
    return static_cast<int>(std::clamp<int64_t>(number.value_or(1), 0, job::kMaxGpus));
  }
  int GpusOf(std::string_view name) {
    const std::string text = TextOf(name);
    return text.empty() ? 0 : GpusOf(name, text);
  }

  // ---- how many ----

  // Nodes, tasks, tasks a node and processors a task, which Slurm derives from each other.
  void ReadCounts() {
    std::string nodes = TextOf("nodes");
    const size_t dash = nodes.find('-');
    if (dash != std::string::npos && dash > 0) {
      if (nodes.substr(0, dash) != nodes.substr(dash + 1))
        AddLoss("nodes", "got " + job::PrintableText(nodes) + "; not kept: it runs on the fewest",
                "roles");
      nodes.resize(dash);
    }
    const auto number = job::ParseInteger(nodes);
    if (!nodes.empty() && (!number || *number < 1 || *number > job::kMaxTasks))
      AddError("nodes", "a number of nodes, or two with '-' between");
    nodes_ = static_cast<int>(number.value_or(0));
    const int per_node = CountOf("ntasks-per-node");
    per_node_ = per_node;
    cpus_ = CountOf("cpus-per-task");
    tasks_ = CountOf("ntasks");
    ReadGpus();
    if (nodes_ == 0 && tasks_ > 0 && per_node > 0) nodes_ = (tasks_ + per_node - 1) / per_node;
    // Without other numbers the tasks of a node are those of the job, on one node.
    if (nodes_ == 0 && tasks_ == 0 && per_node > 0) nodes_ = 1;
    const int64_t all = int64_t{1} * std::max(1, nodes_) * std::max(1, per_node);
    if (all > job::kMaxTasks || tasks_ > job::kMaxTasks) {
      diagnostics_->AddError({1, 1}, "#SBATCH", "got more than 100,000 tasks, expected fewer");
      return;
    }
    if (tasks_ == 0) tasks_ = static_cast<int>(all);
    ShareGpus();
    RaiseToSteps();
    if (nodes_ > tasks_) nodes_ = tasks_;
    const std::string array = TextOf("array");
    if (!array.empty()) ReadArray(array);
  }

  // Tasks that share GPUs are on one node where the number of nodes is open.
  void ShareGpus() {
    const int shared = node_gpus_ > 0 ? node_gpus_ : all_gpus_;
    if (nodes_ > 0 || task_gpus_ > 0 || shared % tasks_ == 0) return;
    nodes_ = 1;
    if (tasks_ <= shared || gpu_tasks_ > 0) return;
    AddLoss(Is("gres")            ? "gres"
            : Is("gpus-per-node") ? "gpus-per-node"
                                  : "gpus",
            "tasks share these GPUs, and on how many nodes is open; kept as one node: set --nodes "
            "if it has to be more",
            "slurm.nodes");
  }

  // A step may have more tasks than the options give, by `srun -n 8` on a node of its own. They
  // share the processors that the options give.
  void RaiseToSteps() {
    allocated_ = tasks_;
    per_node_ = std::max(per_node_, script_.step_per_node);
    const int64_t all = int64_t{1} * std::max(1, nodes_) * script_.step_per_node;
    tasks_ = static_cast<int>(
        std::min<int64_t>(std::max<int64_t>({tasks_, script_.step_tasks, all}), job::kMaxTasks));
  }
  // The processors of `tasks` tasks.
  int64_t CpusOf(int tasks) const {
    if (cpus_ == 0) return tasks;
    return std::max<int64_t>(1, int64_t{1} * tasks * cpus_ * allocated_ / std::max(1, tasks_));
  }

  void ReadArray(const std::string& text) {
    const auto numbers = ParseSlurmArray(text, kMostInArray);
    if (!numbers || numbers->empty()) {
      return AddError(
          "array", "numbers such as 0-9, 1-20:2 or 1,3,7, at most " + std::to_string(kMostInArray));
    }
    array_ = *numbers;
    prelude_.array = array_;
    const size_t colon = text.find(':');
    const std::string step = colon == std::string::npos ? "1" : text.substr(colon + 1);
    prelude_.array_step =
        job::ParseInteger(step.substr(0, step.find_first_not_of("0123456789"))).value_or(1);
    if (tasks_ > 1 && (script_.steps > 0 || script_.mpirun) && !script_.small) {
      diagnostics_->AddError(
          PlaceOf("array"), "--array",
          "got an array of jobs that have several tasks each, expected one of single tasks; "
          "take the line out and run the job for each number, with --set "
          "env.SLURM_ARRAY_TASK_ID=N");
    }
    if (Has(text, "%"))
      AddLoss("array",
              "got " + job::PrintableText(text) + "; not kept: the tasks of a job start together",
              "roles");
  }

  // For each node, or for each task if the number of nodes is open.
  void ReadGpus() {
    const int total = GpusOf("gpus");
    const int of_node = GpusOf("gpus-per-node");
    const int of_task = GpusOf("gpus-per-task");
    const std::string gres = TextOf("gres");
    int listed = 0;
    std::string others;
    for (size_t at = 0; at < gres.size();) {
      const size_t end = std::min(gres.find(',', at), gres.size());
      const std::string one = gres.substr(at, end - at);
      at = end + 1;
      if (one == "gpu") {
        listed += 1;
      } else if (one.starts_with("gpu:")) {
        listed += GpusOf("gres", one.substr(4));
      } else {
        others += (others.empty() ? "" : ",") + one;
      }
    }
    if (!others.empty()) {
      builder_->job()->slurm.options.push_back("--gres=" + others);
      AddLoss(
          "gres",
          job::PrintableText(others) + " is kept in slurm.options; other engines do not heed it",
          "slurm.options");
    }
    node_gpus_ = std::max(of_node, listed);
    task_gpus_ = of_task;
    all_gpus_ = total;
    if (total > 0 && node_gpus_ == 0 && nodes_ > 0) node_gpus_ = (total + nodes_ - 1) / nodes_;
    if (total > 0 && node_gpus_ > 0 && nodes_ == 0 && tasks_ == 0)
      nodes_ = (total + node_gpus_ - 1) / node_gpus_;
    ReadTasksOfGpus();
  }

  // --ntasks-per-gpu says how many tasks there are where --ntasks does not, and each sees one GPU.
  void ReadTasksOfGpus() {
    gpu_tasks_ = CountOf("ntasks-per-gpu");
    if (gpu_tasks_ == 0 || tasks_ > 0) return;
    const int64_t gpus = all_gpus_ > 0 ? all_gpus_ : int64_t{1} * node_gpus_ * std::max(1, nodes_);
    tasks_ = static_cast<int>(
        std::min<int64_t>(gpu_tasks_ * std::max<int64_t>(1, gpus), job::kMaxTasks + 1));
    if (all_gpus_ == 0 && node_gpus_ > 0 && nodes_ == 0) nodes_ = 1;
  }

  // The resources of `tasks` Slurm tasks on one node.
  job::Resources ResourcesOf(int tasks, bool whole_node) {
    job::Resources resources;
    if (!builder_->job()->slurm.exclusive && (cpus_ > 0 || per_node_ > 0 || tasks > 1))
      resources.cpu = static_cast<double>(CpusOf(tasks));
    resources.gpu = task_gpus_ * tasks;
    if (resources.gpu == 0) {
      const int on_node = node_gpus_ > 0 ? node_gpus_ : tasks_ > 0 ? all_gpus_ : 0;
      const int sharing = per_node_ > 0 ? per_node_
                          : nodes_ > 0  ? (tasks_ + nodes_ - 1) / nodes_
                                        : tasks_;
      resources.gpu = whole_node ? on_node : on_node * tasks / std::max(1, sharing);
    }
    resources.gpu = std::min(resources.gpu, job::kMaxGpus);
    if (const int per_gpu = CountOf("cpus-per-gpu"); per_gpu > 0 && cpus_ == 0)
      resources.cpu = per_gpu * std::max(1, resources.gpu);
    const int64_t per_cpu = MemoryOf("mem-per-cpu");
    const int64_t per_gpu = MemoryOf("mem-per-gpu");
    const int64_t of_node = MemoryOf("mem");
    if (per_cpu > 0) {
      resources.memory_bytes =
          MultiplyBounded(per_cpu, static_cast<int>(std::min<int64_t>(CpusOf(tasks), INT32_MAX)));
    } else if (per_gpu > 0) {
      resources.memory_bytes = MultiplyBounded(per_gpu, std::max(1, resources.gpu));
    } else {
      const int sharing = per_node_ > 0 ? per_node_
                          : nodes_ > 0  ? (tasks_ + nodes_ - 1) / nodes_
                                        : tasks_;
      resources.memory_bytes =
          whole_node ? of_node : MultiplyBounded(of_node / std::max(1, sharing), tasks);
    }
    resources.memory_bytes = std::min(resources.memory_bytes, job::kMaxMemoryBytes);
    return resources;
  }

  // ---- the job ----

  void ReadJobOptions() {
    job::Slurm& slurm = builder_->job()->slurm;
    slurm.partition = TextOf("partition");
    slurm.account = TextOf("account");
    slurm.qos = TextOf("qos");
    slurm.constraint = TextOf("constraint");
    slurm.reservation = TextOf("reservation");
    slurm.nodes = nodes_;
    ReadExclusive();
    ReportWholeMemory();
    if (Is("no-requeue")) slurm.requeue = false;
    if (const std::string text = TextOf("time"); !text.empty()) {
      const auto time = ParseSlurmTime(text);
      if (!time)
        return AddError("time",
                        "minutes, [HOURS:]MINUTES:SECONDS or DAYS-HOURS[:MINUTES[:SECONDS]]");
      slurm.time = *time;
      builder_->job()->limits.deadline = *time;
      if (time->count() > 0) {
        AddLoss(
            "time",
            "Slurm killed the job at the end of its time; kept as limits.deadline, at whose end it "
            "fails; with --engine slurm it is told to save slurm.save_before that",
            "slurm.time");
      }
    }
    ReadSignal();
  }

  // --exclusive: nodes for this job alone, or, with a value, shared only with jobs of the same
  // user, label or network block.
  void ReadExclusive() {
    const std::string whom = TextOf("exclusive");
    builder_->job()->slurm.exclusive = Is("exclusive") && whom.empty();
    if (whom.empty()) return;
    builder_->job()->slurm.options.push_back("--exclusive=" + whom);
    AddLoss("exclusive",
            "it says which other jobs its nodes are kept from, and is kept in slurm.options; other "
            "engines do not heed it",
            "slurm.options");
  }

  // "[B:]SIGNAL[@SECONDS]".
  void ReadSignal() {
    std::string text = TextOf("signal");
    if (text.empty()) return;
    const std::string whole = text;
    if (text.find(':') != std::string::npos) text = text.substr(text.rfind(':') + 1);
    const size_t at = text.find('@');
    std::string name = text.substr(0, at);
    if (name.starts_with("SIG")) name = name.substr(3);
    const std::pair<std::string, int> kSignals[] = {
        {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"INT", SIGINT}};
    for (const auto& [known, number] : kSignals) {
      if (name != known && name != std::to_string(number)) continue;
      signal_ = number;
      prelude_.signal = known;
      prelude_.signals_shell = whole.find_first_of("bB") < whole.find(':') && Has(whole, ":");
    }
    const auto seconds = at == std::string::npos ? std::optional<int64_t>(60)
                                                 : job::ParseInteger(text.substr(at + 1));
    if (seconds && *seconds >= 1 && *seconds <= 43'200)
      builder_->job()->slurm.save_before = std::chrono::seconds(*seconds);
    if (signal_ != 0) {
      AddLoss("signal", "kept as the roles' checkpoint_signal and slurm.save_before", "slurm",
              true);
      if (prelude_.signals_shell)
        AddLoss("signal",
                "B: signalled the script's shell only; kept for it and what srun starts: other "
                "programs that the script starts get it too, and end by it where they do not "
                "handle it: start them with srun",
                "slurm");
      return;
    }
    AddLoss("signal",
            "got " + job::PrintableText(whole) +
                "; not kept: before its end a job can be told SIGUSR1, SIGUSR2, SIGHUP or SIGINT",
            "slurm");
  }

  job::Role* AddRole(const std::string& name, int replicas, int processes) {
    job::Role* role = builder_->AddRole(name, {1, 1}, "");
    role->replicas = replicas;
    role->processes = processes;
    role->checkpoint_signal = signal_;
    role->restart.when = job::RestartWhen::kNever;
    if (Is("requeue")) {
      role->restart.when = job::RestartWhen::kTransient;
      builder_->SetScope(role, job::RestartScope::kJob);
    }
    builder_->MarkDecided("roles." + role->name + ".restart.when");
    return role;
  }

  void MakeRoles() {
    const bool steps = script_.steps > 0 && !script_.small;
    if (tasks_ > 1 && (script_.mpirun || (steps && script_.mpi && !script_.torch)))
      return MakeMpi();
    if (tasks_ > 1 && steps) return MakeRanked();
    MakeBatch();
  }

  // One role whose task runs the script once, or one task for each array index.
  void MakeBatch() {
    const int count = array_.empty() ? 1 : static_cast<int>(array_.size());
    job::Role* role = AddRole("batch", count, 1);
    const int here = nodes_ > 0 ? (tasks_ + nodes_ - 1) / nodes_ : tasks_;
    role->resources = ResourcesOf(here, true);
    SetEnv(role, {});
    SetCommand(role, SlurmStepMode::kAlone);
    builder_->SetSuccess(job::SuccessRule::kAll, {role->name});
    if (count == 1) builder_->job()->slurm.nodes = std::min(nodes_, 1);
    if (count > 1) {
      AddLoss("array",
              "the jobs of an array were apart; here they are tasks of one job, which fails, and "
              "stops the others, when one of them fails",
              "roles.batch");
    }
    if (nodes_ > 1) {
      AddLoss("nodes",
              "the script ran on the first of " + std::to_string(nodes_) +
                  " nodes and starts nothing on the others that is known here (srun, mpirun); "
                  "it runs in one place",
              "roles.batch");
    }
  }

  // If nodes are counted, a task of the job is a node with several processes.
  std::pair<int, int> Spread() const {
    const bool even = nodes_ > 0 && tasks_ % nodes_ == 0 && tasks_ / nodes_ <= kMostProcesses;
    return even ? std::pair(nodes_, tasks_ / nodes_) : std::pair(tasks_, 1);
  }

  // Each task is one of srun's tasks, or a node with several processes.
  void MakeRanked() {
    const auto [replicas, processes] = Spread();
    if (script_.torch) builder_->job()->framework = job::Framework::kPytorch;
    job::Role* role = AddRole(script_.torch ? "worker" : "task", replicas, processes);
    role->resources = ResourcesOf(processes, replicas == nodes_);
    SetEnv(role, role->name);
    SetCommand(role, script_.torch ? SlurmStepMode::kTorch : SlurmStepMode::kRanked);
    builder_->SetSuccess(job::SuccessRule::kAll, {role->name});
    const std::string at = "roles." + role->name + ".command";
    diagnostics_->AddLoss(
        {1, 1}, "",
        "the script ran once, on the first node, and srun started its program in all tasks; "
        "here the script runs in each of the " +
            std::to_string(tasks_) + " tasks, so what stands around srun must bear that",
        at);
    if (script_.steps > 1) {
      diagnostics_->AddLoss(
          {1, 1}, "srun",
          "there are several; each began when all tasks of the one before had ended, here each "
          "task goes on by itself: make jobs of those that need what others wrote",
          at);
    }
    if (!script_.torch) {
      diagnostics_->AddLoss(
          {1, 1}, "srun",
          "a program that uses MPI or PMI finds no others: start it with mpirun in the script, "
          "or load a module of MPI there; it is imported as a job of MPI then",
          at);
    }
  }

  // A launcher that runs the script with mpirun, and workers.
  void MakeMpi() {
    const auto [replicas, processes] = Spread();
    builder_->job()->framework = job::Framework::kMpi;
    job::Role* launcher = AddRole("launcher", 1, 1);
    SetEnv(launcher, "worker");
    launcher->env["SLURM_NTASKS"] = std::to_string(tasks_);
    if (nodes_ > 0) launcher->env["SLURM_NNODES"] = std::to_string(nodes_);
    SetCommand(launcher, SlurmStepMode::kMpi);
    job::Role* worker = AddRole("worker", replicas, processes);
    worker->resources = ResourcesOf(processes, replicas == nodes_);
    builder_->SetSuccess(job::SuccessRule::kAll, {"launcher"});
    diagnostics_->AddLoss(
        {1, 1}, "",
        "the variables that the script sets reach its ranks by mpirun -x NAME (-genv with MPICH); "
        "Slurm handed over all of them",
        "roles.launcher.command");
  }

  SlurmAllocation Allocation() {
    const int here = nodes_ > 0 ? (tasks_ + nodes_ - 1) / nodes_ : tasks_;
    return {.nodes = nodes_,
            .tasks = tasks_,
            .per_node = per_node_,
            .cpus = cpus_,
            .node_cpus = builder_->job()->slurm.exclusive ? 0 : CpusOf(here),
            .gpus = all_gpus_,
            .node_gpus = node_gpus_,
            .task_gpus = task_gpus_,
            .cpu_bytes = MemoryOf("mem-per-cpu"),
            .gpu_bytes = MemoryOf("mem-per-gpu"),
            .node_bytes = MemoryOf("mem")};
  }

  void SetEnv(job::Role* role, const std::string& hosts) {
    std::map<std::string, std::string>& env = role->env;
    env["SLURM_JOB_NAME"] = job::EscapeReferences(slurm_name_);
    if (!hosts.empty()) env["SLURM_HOSTS"] = "{{shoal.hosts." + hosts + "}}";
    env.merge(SlurmVariables(Allocation()));
    if (!builder_->job()->slurm.partition.empty())
      env["SLURM_JOB_PARTITION"] = builder_->job()->slurm.partition;
    if (!builder_->job()->slurm.account.empty())
      env["SLURM_JOB_ACCOUNT"] = builder_->job()->slurm.account;
    if (!builder_->job()->slurm.qos.empty()) env["SLURM_JOB_QOS"] = builder_->job()->slurm.qos;
    if (hosts.empty() && tasks_ > 1) env["SLURM_NTASKS"] = std::to_string(tasks_);
    ReadExport(role);
  }

  // --export: "ALL,NAME=VALUE,…", "NONE", or names of variables of the submitting shell.
  void ReadExport(job::Role* role) {
    const std::string text = TextOf("export");
    static const job::Node kNowhere;
    FieldReader from(kNowhere, "--export", "roles." + role->name + ".env", diagnostics_);
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = std::min(text.find(',', at), text.size());
      const std::string one = text.substr(at, end - at);
      const size_t is = one.find('=');
      if (is == std::string::npos) continue;
      const std::string value = job::EscapeReferences(one.substr(is + 1));
      builder_->SetVariable(role, one.substr(0, is), value, &from);
    }
  }

  // The role's command: bash with the prelude and the script.
  void SetCommand(job::Role* role, SlurmStepMode steps) {
    prelude_.steps = steps;
    if (Is("gpus-per-task") || Is("ntasks-per-gpu")) ReadBinding();
    std::string text = SlurmPrelude(prelude_);
    if (const std::string directory = TextOf("chdir"); !directory.empty()) {
      std::string quoted;
      for (const char c : directory) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
      text = "cd '" + quoted + "' || exit\n" + text;
    }
    role->command = script_.shell;
    role->command.insert(role->command.end(), {"-c", text + script_.text});
  }

  // --gpus-per-task and --ntasks-per-gpu give each task its own GPUs, which it sees as the first.
  void ReadBinding() {
    const std::string bind = TextOf("gpu-bind");
    if (bind == "none" || bind.ends_with(",none")) return;
    prelude_.task_gpus = task_gpus_ > 0 ? task_gpus_ : 1;
    prelude_.gpu_tasks = std::max(1, task_gpus_ > 0 ? 1 : gpu_tasks_);
    if (prelude_.steps == SlurmStepMode::kMpi && tasks_ > std::max(1, nodes_))
      AddLoss(task_gpus_ > 0 ? "gpus-per-task" : "ntasks-per-gpu",
              "each task saw GPUs of its own; not kept: ranks of mpirun see those of their node; "
              "let each choose by its local rank",
              "roles.launcher.command");
  }

  const std::string_view text_;
  const std::string file_;
  JobBuilder* const builder_;
  Diagnostics* const diagnostics_;
  SlurmOptionValues options_;
  SlurmScriptInfo script_;
  int nodes_ = 0;  // 0: open
  int tasks_ = 0;
  int per_node_ = 0;
  int allocated_ = 0;  // tasks by the options alone
  int cpus_ = 0;       // of a task; 0: open
  int node_gpus_ = 0;
  int task_gpus_ = 0;
  int all_gpus_ = 0;
  int gpu_tasks_ = 0;  // of --ntasks-per-gpu
  int signal_ = 0;
  std::vector<int64_t> array_;
  std::string slurm_name_;  // SLURM_JOB_NAME
  SlurmPreludeOptions prelude_;
};

}  // namespace

bool IsSlurmScript(std::string_view text) {
  if (!text.starts_with("#!")) return false;
  return text.find("\n#SBATCH ") != std::string_view::npos ||
         text.find("\n#SBATCH\t") != std::string_view::npos;
}

void ImportSlurmScript(std::string_view text, const std::string& file, JobBuilder* builder) {
  BatchScript(text, file, builder).Run();
}

}  // namespace shoal::importer
