// The engines of a program, by name. An instance is a kind of engine (local, docker, kubernetes,
// slurm, marathon) with settings, so a program can use two clusters of one kind at once.
//
// Without a configuration file there is one instance of each kind, named after it. With a file
// (docs/engines/instances.md):
//
//     engines:
//       here: {kind: local}
//       east: {kind: kubernetes, kubeconfig: /etc/shoal/east.conf, context: prod, namespace: ml}
//       hpc:  {kind: slurm, env: {SLURM_CONF: /etc/slurm/hpc.conf}}
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "engine/engine.h"
#include "engine/schedules.h"
#include "engine/tasks/job_files.h"
#include "job/spec/job.h"

namespace shoal::controller {

inline constexpr const char* kLocalEngine = "local";

// Settings of one instance. Empty fields have the kind's defaults. Plain value.
struct EngineInstance {
  std::string name;
  std::string kind;
  std::string kubeconfig = {};  // kubernetes: as $KUBECONFIG
  std::string context = {};     // kubernetes: for jobs that name none
  std::string name_space = {};  // kubernetes: for jobs that name none
  std::string launcher = {};    // kubernetes: image, for jobs that name none
  std::string host = {};        // docker: as $DOCKER_HOST
  std::string url = {};         // marathon: for jobs that name none
  // slurm: environment of its commands, such as SLURM_CONF.
  std::map<std::string, std::string> environment = {};
};

// Thread-safe. Owns the engines, which are made at their first use and live as long as the
// registry.
class EngineRegistry {
 public:
  // `job_dir` finds the directories of jobs of other processes; without it an engine finds only its
  // own jobs and those that the cluster names.
  explicit EngineRegistry(engine::FindJobDir job_dir = {});
  EngineRegistry(std::vector<EngineInstance> instances, engine::FindJobDir job_dir);

  // The engine with this name. Does not connect to its daemon or cluster. InvalidArgument lists the
  // known names.
  Result<engine::Engine*> Find(const std::string& name);
  // The kind of an instance; empty if there is none of this name.
  std::string KindOf(const std::string& name) const;
  // The instance with this name; null if there is none. Valid as long as the registry.
  const EngineInstance* FindInstance(const std::string& name) const;
  // Sets the fields that the job leaves empty and the instance has: kubernetes.context, .namespace
  // and .launcher, marathon.url. To be called before the job is submitted.
  void SetDefaults(const std::string& name, job::Job* job) const;
  // Names of the instances in the file's order, or of the kinds with "local" first.
  std::vector<std::string> names() const;

  // Adds an engine that is made already, in place of an instance of this name.
  void Add(const std::string& name, std::unique_ptr<engine::Engine> engine);

 private:
  const engine::FindJobDir job_dir_;
  const std::vector<EngineInstance> instances_;
  mutable Mutex mu_;
  std::map<std::string, std::unique_ptr<engine::Engine>> engines_ GUARDED_BY(mu_);
};

// One instance of each kind, named after it.
std::vector<EngineInstance> DefaultEngineInstances();
// Reads the instances from a configuration file. InvalidArgument with file, line and column.
Result<std::vector<EngineInstance>> ReadEngineInstances(const std::filesystem::path& file);

// Makes an engine of an instance without connecting to anything. InvalidArgument for an unknown
// kind or a setting that the kind does not have.
Result<std::unique_ptr<engine::Engine>> MakeEngine(const EngineInstance& instance,
                                                   engine::FindJobDir job_dir = {});

// Access to the schedules of a kind's cluster at the address in `settings`; does not connect yet.
// Unimplemented, with an alternative, for kinds without schedules.
Result<std::unique_ptr<engine::Schedules>> MakeSchedules(const std::string& kind,
                                                         const job::Marathon& settings);

// The kinds that users see, "local" first; as a list and as text, "local, docker".
std::vector<std::string> EngineKinds();
std::string EngineKindsText();

// Whether tasks on this kind of engine read their data from this machine's paths: not on a cluster
// with its own files, nor in a container whose `container.volumes` replace the paths. True for an
// unknown kind.
bool ReadsLocalPaths(const std::string& kind, const job::Job& job);

}  // namespace shoal::controller
