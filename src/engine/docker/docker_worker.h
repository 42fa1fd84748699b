// Does an action of docker_job.h: the calls to the daemon, in their order. Used by the engine's
// worker threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/docker/container_spec.h"
#include "engine/docker/docker_api.h"
#include "engine/docker/docker_job.h"
#include "host/gpu/gpu_lease.h"

namespace shoal::engine::docker {

// Thread-safe.
class DockerWorker {
 public:
  DockerWorker(const DockerApi* api, SpecOptions spec) : api_(api), spec_(std::move(spec)) {}

  // Blocks until the daemon has done it. `job`: its settings, for kStart.
  Outcome Do(const Action& action, const DesiredJob& job);
  // Pulls the job's image where it is not here yet.
  Status HaveImage(const DesiredJob& job);
  // What is under way for the job and may take long, a pull, is given up; empty: for all jobs.
  void GiveUp(const std::string& job_id);
  // The job is over: its devices are free.
  void Forget(const std::string& job_id);

 private:
  Result<std::string> Start(const Action& action, const DesiredJob& job);
  Result<std::string> Create(const Action& action, const DesiredJob& job, const json::object& body);
  Status HaveNetwork(const std::string& job_id);
  Result<std::vector<std::string>> Gpus(const Action& action, const DesiredJob& job);
  Outcome Look(const Action& action);

  bool GivenUp(const std::string& job_id);
  // Becomes readable when the job is given up; stays until it is forgotten.
  Result<int> GiveUpFd(const std::string& job_id);

  const DockerApi* const api_;
  const SpecOptions spec_;

  std::mutex mu_;
  // Held while an image is pulled: who needs the same one waits.
  std::map<std::string, std::unique_ptr<std::mutex>> images_;  // guarded by mu_
  std::set<std::string> given_up_;                             // guarded by mu_
  std::map<std::string, UniqueFd> give_up_fds_;                // guarded by mu_: eventfds
  std::mutex networks_mu_;                                     // held while one is made
  std::set<std::string> networks_;  // guarded by networks_mu_: jobs whose network there is
  std::mutex gpus_mu_;
  std::map<std::string, std::map<TaskKey, host::GpuLease>> gpus_;  // guarded by gpus_mu_
};

}  // namespace shoal::engine::docker
