// Executes the actions of docker_job.h as calls to the daemon. Used by the engine's worker threads.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "engine/docker/container_spec.h"
#include "engine/docker/docker_api.h"
#include "engine/docker/docker_job.h"
#include "host/gpu/gpu_lease.h"

namespace shoal::engine::docker {

// Thread-safe.
class DockerWorker {
 public:
  DockerWorker(const DockerApi* api, SpecOptions spec) : api_(api), spec_(std::move(spec)) {}

  // Executes an action; blocks until the daemon has answered. `job`: its settings, for kStart.
  Outcome Execute(const Action& action, const DesiredJob& job);
  // Pulls the job's image if it is not present.
  Status EnsureImage(const DesiredJob& job);
  // Cancels running pulls for the job; empty: for all jobs.
  void CancelPulls(const std::string& job_id);
  // Releases the GPUs of a job that has ended.
  void ReleaseGpus(const std::string& job_id);

 private:
  Result<std::string> Start(const Action& action, const DesiredJob& job);
  Result<std::string> Create(const Action& action, const DesiredJob& job, const json::object& body);
  Status EnsureNetwork(const std::string& job_id);
  Result<std::vector<std::string>> Gpus(const Action& action, const DesiredJob& job);
  Outcome Inspect(const Action& action);

  bool IsCancelled(const std::string& job_id);
  // A descriptor that becomes readable when the job's pulls are cancelled; valid until Forget.
  Result<int> CancelFd(const std::string& job_id);

  const DockerApi* const api_;
  const SpecOptions spec_;

  Mutex mu_;
  // Locked during a pull of the image, so that it is pulled once.
  std::map<std::string, std::unique_ptr<Mutex>> images_ GUARDED_BY(mu_);
  std::set<std::string> cancelled_jobs_ GUARDED_BY(mu_);
  std::map<std::string, UniqueFd> cancel_fds_ GUARDED_BY(mu_);  // eventfds
  Mutex networks_mu_;                                           // held while a network is created
  std::set<std::string> networks_ GUARDED_BY(networks_mu_);     // jobs whose network exists
  Mutex gpus_mu_;
  std::map<std::string, std::map<TaskKey, host::GpuLease>> gpus_ GUARDED_BY(gpus_mu_);
};

}  // namespace shoal::engine::docker
