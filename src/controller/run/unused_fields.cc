#include "controller/run/unused_fields.h"

#include <algorithm>
#include <string_view>

namespace shoal::controller {
namespace {

using job::Job;

// Engines as bits of a set.
enum : unsigned { kLocal = 1, kDocker = 2, kKubernetes = 4, kSlurm = 8, kMarathon = 16 };
constexpr unsigned kAll = kLocal | kDocker | kKubernetes | kSlurm | kMarathon;

struct EngineBit {
  std::string_view name;
  unsigned bit;
};
constexpr EngineBit kEngines[] = {{"local", kLocal},   {"local-apart", kLocal},
                                  {"docker", kDocker}, {"kubernetes", kKubernetes},
                                  {"slurm", kSlurm},   {"marathon", kMarathon}};

// A field, the engines that ignore it, and the alternative.
struct Rule {
  const char* path;
  unsigned unused_on;
  bool (*given)(const Job&);
  const char* advice;
  bool (*by_role)(const job::Role&) = nullptr;  // in place of `given`, for fields of roles
};

// True if the job has one of Shoal's parameter servers, which alone write checkpoints.
bool HasServer(const Job& job) {
  if (job.framework == job::Framework::kShoal) return true;
  const auto is_server = [](const std::vector<std::string>& command) {
    return std::find(command.begin(), command.end(), "ps-server") != command.end();
  };
  return is_server(job.command) ||
         std::any_of(job.roles.begin(), job.roles.end(),
                     [&](const job::Role& role) { return is_server(role.command); });
}

bool Checkpoints(const Job& job) { return job.checkpoint.every.count() > 0; }
bool IsOurs(const Job& job) { return job.framework == job::Framework::kShoal; }

// Outputs besides the one in SHOAL_OUTPUT; framework shoal writes only "model".
bool OtherOutputs(const Job& job) {
  return job.outputs.size() > 1 ||
         (IsOurs(job) && !job.outputs.empty() && !job.outputs.contains("model"));
}

bool AsksHealth(const job::Role& role) { return role.health.by != job::ReadyBy::kStart; }
bool SetsCpuAside(const job::Role& role) { return role.resources.cpu_request > 0; }
bool SetsMemoryAside(const job::Role& role) { return role.resources.memory_request > 0; }

// clang-format off
constexpr Rule kRules[] = {
  {"queue", kAll, [](const Job& job) { return job.queue != "default"; },
   "there is one queue, first in, first out; on a cluster its own settings choose one (slurm.partition, kubernetes.labels)"},
  {"priority", kAll, [](const Job& job) { return job.priority != 0; },
   "jobs start in the order in which they were submitted; on a cluster its own settings rank them (slurm.qos, kubernetes.priority_class)"},
  {"image", kLocal | kSlurm, [](const Job& job) { return !job.image.empty(); },
   "the programs run directly on this engine's machines, where their dependencies must be installed; docker, kubernetes and marathon use images"},
  {"container.volumes", kLocal | kSlurm | kKubernetes, [](const Job& job) { return !job.container.volumes.empty(); },
   "nothing is mounted; processes see the machine's files, and pods the volumes in kubernetes.volumes"},
  {"container.work_dir", kLocal | kSlurm | kMarathon, [](const Job& job) { return !job.container.work_dir.empty(); },
   "write `cd` into the command instead"},
  {"container.user", kLocal | kSlurm | kMarathon, [](const Job& job) { return !job.container.user.empty(); },
   "programs run as the user who runs the job; on Marathon as marathon.user"},
  {"container.pids", kAll & ~kDocker, [](const Job& job) { return job.container.pids > 0; },
   "only docker limits processes by job"},
  {"container.shm", kLocal | kSlurm | kMarathon, [](const Job& job) { return job.container.shm_bytes > 0; },
   "/dev/shm has the size that its machine gives it; on Marathon set marathon.parameters: [shm-size=2g]"},
  {"container.network", kAll & ~kDocker, [](const Job& job) { return job.container.own_network; },
   "only docker makes a network for each job"},
  {"roles.*.resources.requests.cpu", kLocal | kDocker, nullptr,
   "CPU is not reserved here; resources.cpu limits it", SetsCpuAside},
  {"roles.*.resources.requests.memory", kSlurm, nullptr,
   "Slurm reserves the limit; set resources.memory", SetsMemoryAside},
  {"roles.*.health", kAll & ~kMarathon, nullptr,
   "only marathon checks health; `ready` is checked at the start on every engine", AsksHealth},
  {"checkpoint", kAll, [](const Job& job) { return Checkpoints(job) && !HasServer(job); },
   "it saves parameter servers only, and this job has none (framework shoal, or a role with the command [\"@shoal\", ps-server])"},
  {"checkpoint", kKubernetes, [](const Job& job) { return Checkpoints(job) && HasServer(job); },
   "the pods share no directory for checkpoints, so none is written; server_copies keeps rows when a server is lost"},
  {"outputs", kAll, OtherOutputs,
   "programs get only one, in SHOAL_OUTPUT: the one named model, or the only one"},
};
// clang-format on

// The paths of this job to which a rule applies.
std::vector<std::string> PathsOf(const Rule& rule, const Job& job) {
  if (rule.by_role == nullptr)
    return rule.given(job) ? std::vector<std::string>{rule.path} : std::vector<std::string>();
  std::vector<std::string> paths;
  for (const job::Role& role : job.roles) {
    if (rule.by_role(role))
      paths.push_back("roles." + role.name + (rule.path + std::string_view("roles.*").size()));
  }
  return paths;
}

// Sections for single engines. A role's settings count as the job's.
std::string OtherEnginesSections(const Job& job, unsigned engine) {
  std::string names;
  const auto add = [&](const char* name, unsigned own, bool given) {
    if (given && own != engine) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  const auto a_role = [&](const auto& asks) {
    return std::any_of(job.roles.begin(), job.roles.end(), asks);
  };
  const bool slurm =
      a_role([](const job::Role& role) { return role.slurm != job::SlurmSettings(); });
  const bool pods =
      a_role([](const job::Role& role) { return role.kubernetes != job::PodSettings(); });
  add("slurm", kSlurm, job.slurm != job::Slurm() || slurm);
  add("kubernetes", kKubernetes, job.kubernetes != job::Kubernetes() || pods);
  add("marathon", kMarathon, job.marathon != job::Marathon());
  return names;
}

}  // namespace

Status RefuseUnusedFields(const Job& job, bool to_server) {
  if (!job.store.empty()) {
    return InvalidArgument("store: got '" + job.store +
                           "', expected none: all data of a job is stored in the state directory; "
                           "remove the field, and set SHOAL_HOME to move the directory");
  }
  for (const job::DataSource& data : job.data) {
    if (!to_server && data.sources.empty() && !data.table.empty())
      return InvalidArgument("data." + data.name + ".table: got " + data.table +
                             ", which only a server's catalogue knows; submit the job to a server "
                             "(shoal submit --server URL), or give a `source`");
  }
  return Status::Ok();
}

std::vector<UnusedField> UnusedFields(const Job& job, const std::string& engine) {
  const auto* const found = std::find_if(std::begin(kEngines), std::end(kEngines),
                                         [&](const EngineBit& one) { return one.name == engine; });
  if (found == std::end(kEngines)) return {};
  std::vector<UnusedField> unused;
  for (const Rule& rule : kRules) {
    if ((rule.unused_on & found->bit) == 0) continue;
    for (const std::string& path : PathsOf(rule, job)) {
      unused.push_back({path, path + ": the engine " + engine + " ignores it: " + rule.advice});
    }
  }
  if (const std::string names = OtherEnginesSections(job, found->bit); !names.empty()) {
    unused.push_back(
        {names, names + ": the engine " + engine + " ignores it; it applies to that engine only"});
  }
  return unused;
}

}  // namespace shoal::controller
