#include "cli/jobs/engines.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "engine/docker/docker_engine.h"
#include "engine/kubernetes/kubernetes_engine.h"
#include "engine/local/local_engine.h"
#include "engine/marathon/marathon_engine.h"
#include "engine/marathon/metronome.h"
#include "engine/slurm/slurm_engine.h"
#include "job/file/parse.h"

namespace shoal::cli {
namespace {

struct EngineKind {
  const char* name;
  bool shown;
  learn::DataLocation data;
  Result<std::unique_ptr<engine::Engine>> (*make)(engine::FindJobDir);
};

std::string OwnProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

Result<std::unique_ptr<engine::Engine>> MakeSlurm(engine::FindJobDir job_dir) {
  engine::SlurmEngineOptions options;
  options.job_dir = std::move(job_dir);
  options.program = OwnProgram();
  return engine::MakeSlurmEngine(std::move(options));
}

Result<std::unique_ptr<engine::Engine>> MakeMarathon(engine::FindJobDir job_dir) {
  engine::MarathonEngineOptions options;
  options.job_dir = std::move(job_dir);
  options.program = OwnProgram();
  return engine::MakeMarathonEngine(std::move(options));
}

Result<std::unique_ptr<engine::Engine>> MakeDocker(engine::FindJobDir /*job_dir*/) {
  engine::DockerEngineOptions options;
  options.program = OwnProgram();
  return engine::MakeDockerEngine(std::move(options));
}

// For tests (LocalEngineOptions::no_shared_filesystem).
Result<std::unique_ptr<engine::Engine>> MakeLocalApart(engine::FindJobDir /*job_dir*/) {
  engine::LocalEngineOptions options;
  options.no_shared_filesystem = true;
  return engine::MakeLocalEngine(std::move(options));
}

Result<std::unique_ptr<engine::Engine>> MakeKubernetes(engine::FindJobDir job_dir) {
  engine::KubernetesEngineOptions options;
  options.job_dir = std::move(job_dir);
  options.program = OwnProgram();
  return engine::MakeKubernetesEngine(std::move(options));
}

using enum learn::DataLocation;

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

constexpr EngineKind kEngines[] = {
    {kLocalEngine, true, kLocal, [](engine::FindJobDir) { return engine::MakeLocalEngine(); }},
    {"docker", true, kLocal, MakeDocker},
    {"kubernetes", true, kRemote, MakeKubernetes},
    {"slurm", true, kLocal, MakeSlurm},
    {"marathon", true, kLocal, MakeMarathon},
    {"local-apart", false, kRemote, MakeLocalApart},
};

}  // namespace

Result<std::unique_ptr<engine::Engine>> MakeEngine(const std::string& name,
                                                   engine::FindJobDir job_dir) {
  for (const EngineKind& kind : kEngines) {
    if (kind.name == name) return kind.make(std::move(job_dir));
  }
  return InvalidArgument("got the engine " + name + ", expected one of: " + EngineNames());
}

learn::DataLocation WhereDataIs(const std::string& name, const job::Job& job) {
  for (const EngineKind& kind : kEngines) {
    if (kind.name == name && kind.data == kRemote) return kRemote;
  }
  const bool containers = name == "docker" || (name == "marathon" && !job.image.empty());
  return containers && ReadsVolumes(job) ? kRemote : kLocal;
}

Result<std::unique_ptr<engine::Schedules>> MakeSchedules(const std::string& name,
                                                         const job::Marathon& settings) {
  if (name == "marathon") {
    engine::MetronomeOptions options;
    options.program = OwnProgram();
    options.settings_url = settings.url;
    options.authorities = settings.authorities;
    return engine::MakeMetronome(std::move(options));
  }
  TRY(MakeEngine(name).status());
  return Unimplemented("the engine " + name +
                       " has no schedules; --engine marathon has (Metronome), and cron can "
                       "run `shoal run`");
}

std::vector<std::string> EngineNameList() {
  std::vector<std::string> names;
  for (const EngineKind& kind : kEngines) {
    if (kind.shown) names.emplace_back(kind.name);
  }
  return names;
}

std::string EngineNames() {
  std::string names;
  for (const std::string& name : EngineNameList()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

void AddEngineOption(CLI::App* sub, std::string* engine) {
  *engine = kLocalEngine;
  sub->add_option("--engine", *engine, "Engine that runs the tasks: " + EngineNames())
      ->envname("SHOAL_ENGINE")
      ->capture_default_str()
      ->type_name("NAME");
}

}  // namespace shoal::cli
