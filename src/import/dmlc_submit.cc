#include "import/dmlc_submit.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>

#include "import/conversion/job_builder.h"
#include "job/spec/cluster_reference.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

using job::Framework;
using job::RestartWhen;
using job::SuccessRule;

constexpr DmlcFlag kFlags[] = {
    {"cluster", "Where dmlc-submit would run it; Shoal's engine runs it whatever it says", ""},
    {"num-workers", "Number of workers (required)", ""},
    {"num-servers", "Number of servers; 0 is a rabit job, more a job of ps-lite", ""},
    {"worker-cores", "Cores of a worker", ""},
    {"worker-memory", "Memory of a worker: 1g, 512m", ""},
    {"server-cores", "Cores of a server", ""},
    {"server-memory", "Memory of a server: 1g, 512m", ""},
    {"jobname", "Name of the job", ""},
    {"queue", "Queue of the job", ""},
    {"env", "Variables of all tasks: NAME:VALUE,…", ""},
    {"env-server", "Variables of the servers: NAME:VALUE,…", ""},
    {"env-worker", "Variables of the workers: NAME:VALUE,…", ""},
    {"local-num-attempt", "How often a task is started again", ""},
    {"log-level", "Not needed", "the launcher's own log; see SHOAL_LOG"},
    {"log-file", "Not needed", "the launcher's own log; `shoal logs` has the tasks'"},
    {"host-ip", "Not needed", "tasks find each other by themselves"},
    {"host-file", "Not used", "on which hosts tasks run; the engine chooses"},
    {"hdfs-tempdir", "Not used", "a directory for YARN"},
    {"sge-log-dir", "Not used", "a directory for SGE; `shoal logs` has the logs"},
    {"auto-file-cache", "Not needed", "files of the command line were copied; tasks see them here"},
    {"files", "Not needed", "files were copied to the tasks, which see them here"},
    {"archives", "Not used", "archives were unpacked for the tasks; unpack them before"},
    {"yarn-app-classpath", "Not used", "a setting of YARN"},
    {"yarn-app-dir", "Not used", "a setting of YARN"},
    {"mesos-master", "Not used", "the address of Mesos"},
    {"ship-libcxx", "Not used", "a C++ library was copied to the tasks; set LD_LIBRARY_PATH"},
    {"sync-dst-dir", "Not used", "the directory was copied to the hosts; tasks run in it here"},
    {"slurm-worker-nodes", "Not used", "on how many nodes of Slurm workers run"},
    {"slurm-server-nodes", "Not used", "on how many nodes of Slurm servers run"},
    {"kube-namespace", "Not used", "a namespace of Kubernetes"},
    {"kube-worker-image", "Not used", "the workers' image; commands run on this machine"},
    {"kube-server-image", "Not used", "the servers' image; commands run on this machine"},
    {"kube-worker-template", "Not used", "a template of Kubernetes"},
    {"kube-server-template", "Not used", "a template of Kubernetes"},
    {"n", "Number of workers, as MXNet's launch.py has it: as many servers without -s", ""},
    {"s", "Number of servers, of launch.py", ""},
    {"H", "Not used", "on which hosts tasks run; the engine chooses"},
    {"hostfile", "Not used", "on which hosts tasks run; the engine chooses"},
    {"launcher", "Where launch.py would run it; Shoal's engine runs it whatever it says", ""},
};

using Flags = std::map<std::string, std::vector<std::string>>;

// Options that MXNet's launch.py has and dmlc-submit has not.
constexpr const char* kOfMxnet[] = {"n", "s", "H", "hostfile", "launcher"};

std::string Option(const std::string& flag) { return (flag.size() == 1 ? "-" : "--") + flag; }

Status FlagError(const std::string& flag, const std::string& got, const std::string& expected) {
  return InvalidArgument(Option(flag) + ": got " + job::PrintableText(got) + ", expected " +
                         expected);
}

// The last value, as in argparse; nullopt if the flag is absent.
std::optional<std::string> LastValue(const Flags& flags, const std::string& name) {
  const auto found = flags.find(name);
  if (found == flags.end() || found->second.empty()) return std::nullopt;
  return found->second.back();
}

Result<int> ParseCount(const Flags& flags, const std::string& name, int most, int other) {
  const auto text = LastValue(flags, name);
  if (!text) return other;
  const auto value = job::ParseInteger(*text);
  if (value && *value >= 0 && *value <= most) return static_cast<int>(*value);
  return FlagError(name, *text, "an integer from 0 to " + std::to_string(most));
}

// "1g" or "512m" in upper or lower case, as bytes.
Result<int64_t> ParseMemory(const Flags& flags, const std::string& name) {
  const auto text = LastValue(flags, name);
  if (!text) return int64_t{0};
  const char unit = text->empty() ? '?' : static_cast<char>(text->back() | 0x20);
  const auto number = text->empty()
                          ? std::nullopt
                          : job::ParseNumber(std::string_view(*text).substr(0, text->size() - 1));
  const double mb = number ? std::floor(*number * (unit == 'g' ? 1024 : 1)) : 0;
  const bool fits = mb >= 1 && mb <= static_cast<double>(job::kMaxMemoryBytes >> 20);
  if ((unit != 'g' && unit != 'm') || !fits) {
    return FlagError(name, *text, "a number that ends with g or m, such as 1g");
  }
  return static_cast<int64_t>(mb) << 20;
}

Status AddVariables(const Flags& flags, const std::string& name, job::Role* role,
                    JobBuilder* builder, FieldReader* from) {
  const std::string pairs = LastValue(flags, name).value_or("");
  for (size_t begin = 0; begin < pairs.size();) {
    const size_t end = std::min(pairs.find(',', begin), pairs.size());
    const std::string pair = pairs.substr(begin, end - begin);
    begin = end + 1;
    if (pair.empty()) continue;
    const size_t colon = pair.find(':');
    if (colon == std::string::npos || pair.find(':', colon + 1) != std::string::npos) {
      return FlagError(name, pair, "NAME:VALUE, several with ',' between them");
    }
    builder->SetVariable(role, pair.substr(0, colon), job::EscapeReferences(pair.substr(colon + 1)),
                         from);
  }
  return Status::Ok();
}

Status AddRole(const Flags& flags, const std::string& name, int replicas, JobBuilder* builder) {
  static const job::Node kNowhere;
  FieldReader from(kNowhere, "--env", "roles." + name, builder->diagnostics());
  job::Role* role = builder->AddRole(name, {}, "");
  role->replicas = replicas;
  role->env["DMLC_JOB_CLUSTER"] = "local";
  if (name != "scheduler") {
    TRY_ASSIGN(const int cores, ParseCount(flags, name + "-cores", 65536, 0));
    TRY_ASSIGN(role->resources.memory_bytes, ParseMemory(flags, name + "-memory"));
    role->resources.cpu = cores;
  }
  TRY(AddVariables(flags, "env", role, builder, &from));
  if (name != "scheduler") TRY(AddVariables(flags, "env-" + name, role, builder, &from));
  TRY_ASSIGN(const int attempts, ParseCount(flags, "local-num-attempt", 1000, 0));
  role->restart.when = attempts > 0 ? RestartWhen::kAlways : RestartWhen::kNever;
  if (attempts > 0) role->restart.limit = attempts;
  return Status::Ok();
}

// dmlc-submit joins the words and runs the line in bash: words with blanks are split, variables are
// expanded, and a program in the current directory needs no "./".
std::vector<std::string> ShellCommandFor(std::vector<std::string> words) {
  std::error_code error;
  if (words[0].find('/') == std::string::npos &&
      std::filesystem::is_regular_file(words[0], error)) {
    words[0] = "./" + words[0];
  }
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  const bool plain = std::all_of(line.begin(), line.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view(" _-./:=,@%+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  const bool whole = std::none_of(words.begin(), words.end(), [](const std::string& word) {
    return word.empty() || word.find(' ') != std::string::npos;
  });
  // bash would read "A=1 program" as an assignment.
  const bool program = words[0].find('=') == std::string::npos;
  return plain && whole && program ? words : std::vector<std::string>{"bash", "-c", line};
}

// The flags by their names in dmlc-submit. launch.py has as many servers as workers by default.
Flags WithoutShortNames(Flags flags) {
  const bool mxnet =
      std::ranges::any_of(kOfMxnet, [&](const char* name) { return flags.contains(name); });
  for (const auto& [shorter, name] :
       {std::pair{"n", "num-workers"}, {"s", "num-servers"}, {"launcher", "cluster"}}) {
    auto taken = flags.extract(shorter);
    if (taken.empty()) continue;
    taken.key() = name;
    flags.insert(std::move(taken));
  }
  if (mxnet && !flags.contains("num-servers") && flags.contains("num-workers"))
    flags["num-servers"] = flags["num-workers"];
  return flags;
}

Status BuildJob(const Flags& flags, const std::vector<std::string>& command, JobBuilder* builder) {
  if (!flags.contains("num-workers")) {
    return InvalidArgument("--num-workers is missing, expected the number of workers");
  }
  if (command.empty()) {
    return InvalidArgument("got no command, expected the program behind the flags");
  }
  TRY_ASSIGN(const int workers, ParseCount(flags, "num-workers", job::kMaxReplicas, 1));
  TRY_ASSIGN(const int servers, ParseCount(flags, "num-servers", job::kMaxReplicas, 0));
  job::Job& job = *builder->job();
  job.framework = servers > 0 ? Framework::kPsLite : Framework::kRabit;
  job.command = ShellCommandFor(command);
  const std::string program = command[0].substr(command[0].rfind('/') + 1);
  builder->SetName(LastValue(flags, "jobname").value_or(program));
  job.queue = LastValue(flags, "queue").value_or("default");
  if (servers > 0) {
    TRY(AddRole(flags, "scheduler", 1, builder));
    TRY(AddRole(flags, "server", servers, builder));
  }
  TRY(AddRole(flags, "worker", workers, builder));
  // dmlc-submit numbers workers first, then servers.
  if (servers > 0) builder->FindRole("worker")->env.try_emplace("DMLC_TASK_ID", "{{shoal.index}}");
  if (servers == 1) {
    builder->FindRole("server")->env.try_emplace("DMLC_TASK_ID", std::to_string(workers));
  }
  builder->SetSuccess(SuccessRule::kAll, {"worker"});
  return Status::Ok();
}

void ReportLost(const Flags& flags, Diagnostics* diagnostics) {
  const std::string cluster = LastValue(flags, "cluster").value_or("local");
  if (cluster != "local") {
    diagnostics->AddLoss({}, "--cluster",
                         job::PrintableText(cluster) +
                             " said where the tasks run; not kept: the "
                             "local engine runs them on this machine",
                         "");
  }
  for (const DmlcFlag& flag : kFlags) {
    if (flag.lost.empty() || !flags.contains(std::string(flag.name))) continue;
    diagnostics->AddLoss({}, Option(std::string(flag.name)), "not kept: " + std::string(flag.lost),
                         "");
  }
  if (job::ParseInteger(LastValue(flags, "num-servers").value_or("0")).value_or(0) > 1) {
    diagnostics->AddMinorLoss({}, "--num-servers",
                              "servers had DMLC_TASK_ID, counted after the workers'; not kept: "
                              "SHOAL_INDEX counts the servers from 0",
                              "");
  }
  if (flags.contains("local-num-attempt")) {
    diagnostics->AddMinorLoss(
        {}, "--local-num-attempt",
        "a task started again got DMLC_NUM_ATTEMPT=n as its last argument; not kept: "
        "SHOAL_ATTEMPT says it",
        "roles");
  }
}

}  // namespace

std::span<const DmlcFlag> DmlcFlags() { return kFlags; }

Result<ImportedJob> ImportDmlcSubmit(const Flags& given, const std::vector<std::string>& command) {
  const Flags flags = WithoutShortNames(given);
  const std::string file = "dmlc-submit";
  job::Errors errors(file, {});
  Diagnostics diagnostics(file, &errors);
  JobBuilder builder(file, &diagnostics);
  TRY(BuildJob(flags, command, &builder));
  ReportLost(flags, &diagnostics);
  if (!errors.empty()) return errors.ToStatus();
  ImportedJob imported{"dmlc-submit command", file, builder.Build(), {}, false};
  imported.losses = diagnostics.TakeLosses();
  return imported;
}

}  // namespace shoal::importer
