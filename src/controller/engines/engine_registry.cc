#include "controller/engines/engine_registry.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "engine/docker/docker_engine.h"
#include "engine/kubernetes/kubernetes_engine.h"
#include "engine/local/local_engine.h"
#include "engine/marathon/marathon_engine.h"
#include "engine/marathon/metronome.h"
#include "engine/slurm/slurm_engine.h"
#include "job/file/parse.h"

namespace shoal::controller {
namespace {

using MadeEngine = Result<std::unique_ptr<engine::Engine>>;

std::string OwnProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

MadeEngine MakeLocal(const EngineInstance& /*instance*/, engine::FindJobDir /*job_dir*/) {
  return engine::MakeLocalEngine();
}

// For tests (LocalEngineOptions::no_shared_filesystem).
MadeEngine MakeLocalApart(const EngineInstance& /*instance*/, engine::FindJobDir /*job_dir*/) {
  engine::LocalEngineOptions options;
  options.no_shared_filesystem = true;
  return engine::MakeLocalEngine(std::move(options));
}

MadeEngine MakeDocker(const EngineInstance& instance, engine::FindJobDir /*job_dir*/) {
  engine::DockerEngineOptions options;
  options.host = instance.host;
  options.program = OwnProgram();
  return engine::MakeDockerEngine(std::move(options));
}

MadeEngine MakeKubernetes(const EngineInstance& instance, engine::FindJobDir job_dir) {
  engine::KubernetesEngineOptions options;
  options.job_dir = std::move(job_dir);
  options.program = OwnProgram();
  if (!instance.kubeconfig.empty()) options.place.kubeconfig = instance.kubeconfig;
  return engine::MakeKubernetesEngine(std::move(options));
}

MadeEngine MakeSlurm(const EngineInstance& instance, engine::FindJobDir job_dir) {
  engine::SlurmEngineOptions options;
  options.job_dir = std::move(job_dir);
  options.program = OwnProgram();
  for (const auto& [name, value] : instance.environment)
    options.added_environment.push_back(name + "=" + value);
  return engine::MakeSlurmEngine(std::move(options));
}

MadeEngine MakeMarathon(const EngineInstance& instance, engine::FindJobDir job_dir) {
  engine::MarathonEngineOptions options;
  options.job_dir = std::move(job_dir);
  options.program = OwnProgram();
  options.url = instance.url;
  return engine::MakeMarathonEngine(std::move(options));
}

struct Kind {
  const char* name;
  bool shown;
  bool reads_local_paths;
  MadeEngine (*make)(const EngineInstance&, engine::FindJobDir);
};

constexpr Kind kKinds[] = {
    {kLocalEngine, true, true, MakeLocal},       {"docker", true, true, MakeDocker},
    {"kubernetes", true, false, MakeKubernetes}, {"slurm", true, true, MakeSlurm},
    {"marathon", true, true, MakeMarathon},      {"local-apart", false, false, MakeLocalApart},
};

bool IsShown(const EngineInstance& instance) {
  return std::none_of(std::begin(kKinds), std::end(kKinds),
                      [&](const Kind& kind) { return kind.name == instance.kind && !kind.shown; });
}

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// True if some of the data is below a target of `container.volumes`.
bool ReadsVolumes(const job::Job& job) {
  for (const std::string& text : job.container.volumes) {
    const auto volume = job::ParseVolume(text);
    if (!volume.ok()) continue;
    const std::string below = volume->target + "/";
    for (const job::DataSource& data : job.data) {
      for (const std::string& source : data.sources)
        if (source.starts_with(below)) return true;
    }
  }
  return false;
}

void SetIfEmpty(const std::string& value, std::string* field) {
  if (field->empty()) *field = value;
}

}  // namespace

EngineRegistry::EngineRegistry(engine::FindJobDir job_dir)
    : EngineRegistry(DefaultEngineInstances(), std::move(job_dir)) {}

EngineRegistry::EngineRegistry(std::vector<EngineInstance> instances, engine::FindJobDir job_dir)
    : job_dir_(std::move(job_dir)), instances_(std::move(instances)) {}

const EngineInstance* EngineRegistry::FindInstance(const std::string& name) const {
  for (const EngineInstance& instance : instances_) {
    if (instance.name == name) return &instance;
  }
  return nullptr;
}

Result<engine::Engine*> EngineRegistry::Find(const std::string& name) {
  const MutexLock lock(mu_);
  if (const auto found = engines_.find(name); found != engines_.end()) return found->second.get();
  const EngineInstance* const instance = FindInstance(name);
  if (instance == nullptr) {
    return InvalidArgument("got the engine " + name + ", expected one of: " + Join(names()));
  }
  TRY_ASSIGN(std::unique_ptr<engine::Engine> made, MakeEngine(*instance, job_dir_));
  return (engines_[name] = std::move(made)).get();
}

std::string EngineRegistry::KindOf(const std::string& name) const {
  if (const EngineInstance* const instance = FindInstance(name)) return instance->kind;
  const MutexLock lock(mu_);
  const auto found = engines_.find(name);
  return found == engines_.end() ? "" : found->second->name();
}

void EngineRegistry::SetDefaults(const std::string& name, job::Job* job) const {
  const EngineInstance* const instance = FindInstance(name);
  if (instance == nullptr) return;
  SetIfEmpty(instance->context, &job->kubernetes.context);
  SetIfEmpty(instance->name_space, &job->kubernetes.name_space);
  SetIfEmpty(instance->launcher, &job->kubernetes.launcher);
  SetIfEmpty(instance->url, &job->marathon.url);
}

std::vector<std::string> EngineRegistry::names() const {
  std::vector<std::string> names;
  for (const EngineInstance& instance : instances_) {
    if (IsShown(instance)) names.push_back(instance.name);
  }
  return names;
}

void EngineRegistry::Add(const std::string& name, std::unique_ptr<engine::Engine> engine) {
  const MutexLock lock(mu_);
  engines_[name] = std::move(engine);
}

std::vector<EngineInstance> DefaultEngineInstances() {
  std::vector<EngineInstance> instances;
  for (const Kind& kind : kKinds) instances.push_back({.name = kind.name, .kind = kind.name});
  return instances;
}

Result<std::unique_ptr<engine::Engine>> MakeEngine(const EngineInstance& instance,
                                                   engine::FindJobDir job_dir) {
  for (const Kind& kind : kKinds) {
    if (kind.name == instance.kind) return kind.make(instance, std::move(job_dir));
  }
  return InvalidArgument("got the engine " + instance.kind +
                         ", expected one of: " + EngineKindsText());
}

Result<std::unique_ptr<engine::Schedules>> MakeSchedules(const std::string& kind,
                                                         const job::Marathon& settings) {
  if (kind == "marathon") {
    engine::MetronomeOptions options;
    options.program = OwnProgram();
    options.settings_url = settings.url;
    options.authorities = settings.authorities;
    return engine::MakeMetronome(std::move(options));
  }
  TRY(MakeEngine({.name = kind, .kind = kind}).status());
  return Unimplemented("the engine " + kind +
                       " has no schedules; --engine marathon has (Metronome), and cron can "
                       "run `shoal run`");
}

std::vector<std::string> EngineKinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) {
    if (kind.shown) names.emplace_back(kind.name);
  }
  return names;
}

std::string EngineKindsText() { return Join(EngineKinds()); }

bool ReadsLocalPaths(const std::string& kind, const job::Job& job) {
  for (const Kind& known : kKinds) {
    if (known.name == kind && !known.reads_local_paths) return false;
  }
  const bool containers = kind == "docker" || (kind == "marathon" && !job.image.empty());
  return !containers || !ReadsVolumes(job);
}

}  // namespace shoal::controller
