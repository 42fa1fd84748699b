#include "engine/docker/docker_worker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.h"
#include "base/mutex.h"
#include "engine/docker/registry_auth.h"
#include "engine/exec/local_exec.h"
#include "engine/process/local_host.h"
#include "net/byte_channel.h"

namespace shoal::engine::docker {
namespace {

constexpr size_t kLogTail = 4096;

}  // namespace

Outcome DockerWorker::Execute(const Action& action, const DesiredJob& job) {
  Outcome outcome;
  outcome.action = action;
  switch (action.kind) {
    case Action::Kind::kStart: {
      auto started = Start(action, job);
      outcome.status = started.status();
      if (started.ok()) outcome.container = *started;
      return outcome;
    }
    case Action::Kind::kSignal:
      outcome.status = api_->Kill(action.container, action.signal);
      return outcome;
    case Action::Kind::kRemove:
      outcome.status = api_->Remove(action.container);
      return outcome;
    case Action::Kind::kInspect:
      break;
  }
  return Inspect(action);
}

Outcome DockerWorker::Inspect(const Action& action) {
  Outcome outcome;
  outcome.action = action;
  auto state = api_->Inspect(action.container);
  if (!state.ok()) {
    if (state.status().code() != Code::kNotFound) outcome.status = state.status();
    return outcome;
  }
  if (!state->running && state->exit_code != 0)
    outcome.log_tail = api_->Logs(action.container, kLogTail).value_or("");
  outcome.state = std::move(*state);
  return outcome;
}

Result<std::string> DockerWorker::Start(const Action& action, const DesiredJob& job) {
  TRY(CheckHostNotExcluded("docker", action.task));
  TRY(EnsureImage(job));
  if (!action.container.empty()) TRY(api_->Remove(action.container));
  // After a kill of the daemon, containers that it reports as dead may still run for a moment.
  if (action.incarnation > 0)
    KillEarlierIncarnations(job.job_id, action.key.first, action.key.second, action.incarnation);
  TRY_ASSIGN(const std::vector<std::string> gpus, Gpus(action, job));
  if (job.container.own_network) TRY(EnsureNetwork(job.job_id));
  const json::object body =
      MakeContainer(spec_, {&job, &action.task, action.incarnation, action.order, gpus});
  TRY_ASSIGN(const std::string id, Create(action, job, body));
  const Status started = api_->Start(id, action.task.argv[0]);
  if (started.ok()) return id;
  (void)api_->Remove(id);
  return started;
}

Result<std::string> DockerWorker::Create(const Action& action, const DesiredJob& job,
                                         const json::object& body) {
  const std::string name =
      ContainerName(job.job_id, action.key.first, action.key.second, action.incarnation);
  auto made = api_->Create(name, body);
  if (made.ok() || made.status().code() != Code::kAlreadyExists) return made;
  // Created by an earlier call whose reply was lost, or not Shoal's.
  TRY_ASSIGN(const ContainerState there, api_->Inspect(name));
  if (!there.task || there.task->job != job.job_id) return made;
  TRY(api_->Remove(there.id));
  return api_->Create(name, body);
}

Status DockerWorker::EnsureNetwork(const std::string& job_id) {
  const MutexLock lock(networks_mu_);
  if (networks_.contains(job_id)) return Status::Ok();
  TRY(api_->CreateNetwork(MakeNetwork(job_id)));
  networks_.insert(job_id);
  return Status::Ok();
}

Status DockerWorker::EnsureImage(const DesiredJob& job) {
  const std::string image = ImageOf(job);
  Mutex* pulling = nullptr;
  {
    const MutexLock lock(mu_);
    auto& one = images_[image];
    if (one == nullptr) one = std::make_unique<Mutex>();
    pulling = one.get();
  }
  const MutexLock wait(*pulling);
  if (IsCancelled(job.job_id)) return Cancelled("the job was stopped");
  TRY_ASSIGN(const bool here, api_->HasImage(image));
  if (here) return Status::Ok();
  if (job.image.empty()) return api_->MakeEmptyImage(kEmptyRepository, kEmptyTag);
  LogWarning("image {} is not on this machine: pulling it", image);
  TRY_ASSIGN(const std::string login, OwnLogin(image));
  // The daemon sends no progress until the registry has responded.
  TRY_ASSIGN(const int given_up, CancelFd(job.job_id));
  const net::WaitInterrupt interrupt(given_up);
  const Status pulled = api_->Pull(image, login, [&](const std::string& progress) {
    if (!progress.empty()) LogInfo("image {}: {}", image, progress);
    return IsCancelled(job.job_id) ? Cancelled("the job was stopped") : Status::Ok();
  });
  if (pulled.ok() || pulled.code() == Code::kCancelled) return pulled;
  const std::string text =
      "image " + image + " is not on this machine and could not be pulled: " + pulled.message();
  return pulled.code() == Code::kUnavailable ? Unavailable(text) : NotFound(text);
}

Result<std::vector<std::string>> DockerWorker::Gpus(const Action& action, const DesiredJob& job) {
  std::vector<std::string> uuids;
  const int count = action.task.resources.gpu;
  if (count == 0) return uuids;
  const std::string name = action.key.first + "-" + std::to_string(action.key.second);
  const MutexLock lock(gpus_mu_);
  gpus_[job.job_id].erase(action.key);
  auto nvml = host::Nvml::Load();
  if (!nvml.ok()) return nvml.status().With(name + " needs GPUs");
  TRY_ASSIGN(host::GpuLease lease,
             host::AcquireGpus(nvml->get(), host::GpuLeaseDir(), count, job.job_id + " " + name));
  uuids = lease.uuids;
  gpus_[job.job_id].insert_or_assign(action.key, std::move(lease));
  return uuids;
}

void DockerWorker::CancelPulls(const std::string& job_id) {
  const MutexLock lock(mu_);
  cancelled_jobs_.insert(job_id);
  const uint64_t one = 1;
  for (const auto& [job, fd] : cancel_fds_) {
    if (job_id.empty() || job == job_id) (void)!::write(fd.get(), &one, sizeof one);
  }
}

Result<int> DockerWorker::CancelFd(const std::string& job_id) {
  const MutexLock lock(mu_);
  UniqueFd& fd = cancel_fds_[job_id];
  if (fd.valid()) return fd.get();
  const bool already = cancelled_jobs_.contains(job_id) || cancelled_jobs_.contains("");
  fd.Reset(::eventfd(already ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot make an eventfd");
  return fd.get();
}

bool DockerWorker::IsCancelled(const std::string& job_id) {
  const MutexLock lock(mu_);
  return cancelled_jobs_.contains(job_id) || cancelled_jobs_.contains("");
}

void DockerWorker::ReleaseGpus(const std::string& job_id) {
  {
    const MutexLock lock(networks_mu_);
    networks_.erase(job_id);
  }
  {
    const MutexLock lock(mu_);
    cancelled_jobs_.erase(job_id);
    cancel_fds_.erase(job_id);
  }
  const MutexLock lock(gpus_mu_);
  gpus_.erase(job_id);
}

}  // namespace shoal::engine::docker
