// The methods of Engine change the jobs (docker_job.h) under mu_ and wake the manager thread, which
// queues due actions for a few worker threads (docker_worker.h) and publishes events. One more
// thread reads the daemon's event stream. mu_ is not held during calls to the daemon or to
// watches.
#include "engine/docker/docker_engine.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "engine/docker/container_spec.h"
#include "engine/docker/docker_api.h"
#include "engine/docker/docker_exec.h"
#include "engine/docker/docker_job.h"
#include "engine/docker/docker_worker.h"
#include "engine/docker/host_files.h"
#include "engine/exec/local_exec.h"
#include "engine/process/local_host.h"
#include "engine/tasks/coordinator_location.h"
#include "engine/tasks/engine_base.h"
#include "engine/tasks/job_files.h"
#include "host/gpu/nvml.h"

namespace shoal::engine {
namespace {

namespace fs = std::filesystem;
using docker::Action;
using docker::DockerJob;
using docker::Outcome;
using std::chrono::milliseconds;

constexpr size_t kWorkers = 8;
constexpr milliseconds kKillPatience{10'000};
constexpr milliseconds kEventSilence{
    60'000};  // then all containers are compared, in case an event was lost
constexpr milliseconds kFirstRetry{100};
constexpr milliseconds kLongestRetry{2'000};
constexpr size_t kMaxEvent = 1 << 20;

// What the engine keeps of a job.
struct JobEntry {
  std::unique_ptr<DockerJob> job;
  std::string dir;
  JobLock lock;  // one engine at a time manages a job
};

// The account's name; $USER if the user id has none.
std::string OwnUserName() {
  constexpr size_t kMost = 16 << 10;
  std::string buffer(kMost, '\0');
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
      found != nullptr)
    return found->pw_name;
  const char* const variable = std::getenv("USER");
  return variable == nullptr ? "" : variable;
}

// Supplementary groups, by number.
std::vector<std::string> OwnGroups() {
  std::vector<gid_t> ids(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(ids.size()), ids.data());
  std::vector<std::string> groups;
  for (int i = 0; i < count; ++i) {
    const gid_t id = ids[static_cast<size_t>(i)];
    if (id != ::getegid()) groups.push_back(std::to_string(id));
  }
  return groups;
}

Result<docker::SpecOptions> MakeSpecOptions(const DockerEngineOptions& options) {
  docker::SpecOptions spec;
  spec.program = options.program;
  spec.launcher = options.launcher;
  if (spec.launcher.empty() && !spec.program.empty()) {
    TRY_ASSIGN(spec.launcher, docker::FindLauncher(spec.program));
  }
  spec.user = std::to_string(::geteuid()) + ":" + std::to_string(::getegid());
  spec.user_name = OwnUserName();
  spec.groups = OwnGroups();
  for (const char* name : {"LANG", "TZ", "SHOAL_LOG", "SHOAL_FAULTS"}) {
    if (const char* value = std::getenv(name); value != nullptr)
      spec.environment.push_back(std::string(name) + "=" + value);
  }
  // A container's host name may differ from the machine's.
  spec.environment.push_back(std::string(kNodeVariable) + "=" + LocalHostName());
  return spec;
}

// Lock order: connect_mu_ and mu_ are never held together with a call to the daemon. A job is added
// by Apply or Adopt and removed at the end of Stop. See the head of this file for the threads.
class DockerEngine final : public EngineBase<JobEntry>, public Executes {
 public:
  explicit DockerEngine(DockerEngineOptions options) : options_(std::move(options)) {
    manager_ = std::thread([this] { Manage(); });
    for (size_t i = 0; i < kWorkers; ++i) workers_.emplace_back([this] { Work(); });
  }
  ~DockerEngine() override;

  std::string name() const override { return "docker"; }
  Result<Capacity> GetCapacity() override;
  Result<EntryPoint> FindEntryPoint(const std::string& image) override;
  Status Apply(const DesiredJob& desired) override;
  Result<std::string> Describe(const DesiredJob& desired) override;
  Status Stop(const std::string& job_id, milliseconds grace) override;
  Result<std::vector<TaskStatus>> Adopt(const std::string& job_id,
                                        const std::string& job_dir) override;
  Result<Endpoint> Dial(const std::string& job_id) override;
  Result<std::string> TaskLog(const std::string& job_id, const std::string& role, int index,
                              size_t limit) override;
  Executes* executes() override { return this; }
  Result<std::unique_ptr<Execution>> Exec(const std::string& job_id, const std::string& role,
                                          int index, const ExecSpec& spec) override;
  Result<UniqueFd> DialTask(const std::string& job_id, const std::string& role, int index,
                            uint16_t port) override;

 private:
  // An action with the settings of its job, queued for a worker.
  struct ActionBatch {
    Action action;
    DesiredJob settings;
  };
  // Created once, by the first method that needs it.
  struct Daemon {
    Daemon(std::unique_ptr<docker::DockerApi> connected, docker::SpecOptions spec)
        : api(std::move(connected)), worker(api.get(), std::move(spec)) {}
    const std::unique_ptr<docker::DockerApi> api;
    docker::DockerWorker worker;
  };
  Result<Daemon*> Connect();
  std::string DirOf(const JobEntry& entry) const override { return entry.dir; }

  void Manage();
  void Work();
  void Listen();
  // Reads events until the stream breaks; advances `since`.
  Status ListenOnce(std::string* since);
  Status Compare();
  void OnContainerEvent(const docker::ContainerEvent& event);
  void StartListener() REQUIRES(mu_);
  bool Sleep(milliseconds time);
  Result<JobEntry*> AddJob(const std::string& job_id, const std::string& dir) REQUIRES(mu_);
  Status RemoveAll(const std::string& job_id);
  Result<docker::ContainerState> FindContainer(const std::string& job_id, const std::string& role,
                                               int index);

  const DockerEngineOptions options_;

  Mutex connect_mu_;
  std::unique_ptr<Daemon> daemon_;  // set under connect_mu_, and never changed again

  CondVar due_;   // for the manager
  CondVar work_;  // for the workers
  std::deque<ActionBatch> queue_ GUARDED_BY(mu_);
  std::vector<TaskEvent> outbox_ GUARDED_BY(mu_);            // to be published by the manager
  std::shared_ptr<net::HttpStream> stream_ GUARDED_BY(mu_);  // of events
  bool manager_due_ GUARDED_BY(mu_) = false;
  bool publishing_ GUARDED_BY(mu_) = false;
  bool listening_ GUARDED_BY(mu_) = false;
  std::thread listener_ GUARDED_BY(mu_);  // until the end
  std::thread manager_;                   // these last: they use all of the above
  std::vector<std::thread> workers_;
};

DockerEngine::~DockerEngine() {
  {
    const MutexLock lock(mu_);
    ending_ = true;
    queue_.clear();
    if (stream_ != nullptr) stream_->Cancel();
  }
  if (daemon_ != nullptr) daemon_->worker.CancelPulls("");
  due_.notify_all();
  work_.notify_all();
  changed_.notify_all();
  manager_.join();
  for (std::thread& worker : workers_) worker.join();
  if (listener_.joinable()) listener_.join();
}

// ---- The manager and the workers ----

void DockerEngine::Manage() {
  MutexLock lock(mu_);
  while (!ending_) {
    manager_due_ = false;
    const TimePoint now = options_.clock->Now();
    std::optional<TimePoint> next;
    for (auto& [id, entry] : jobs_) {
      if (entry.job->owned() && !entry.lock.held()) entry.job->Disown();
      std::vector<Action> actions;
      const auto due = entry.job->Step(now, &actions, &outbox_);
      if (due && (!next || *due < *next)) next = due;
      for (Action& action : actions) queue_.push_back({std::move(action), entry.job->settings()});
    }
    if (!queue_.empty()) work_.notify_all();
    std::vector<TaskEvent> events = std::move(outbox_);
    outbox_.clear();
    publishing_ = true;
    lock.unlock();
    Publish(events);
    lock.lock();
    publishing_ = false;
    changed_.notify_all();
    const auto manager_due = [this]() REQUIRES(mu_) { return manager_due_ || ending_; };
    if (next) {
      due_.wait_for(lock, std::max(*next - options_.clock->Now(), Duration(0)), manager_due);
    } else {
      due_.wait(lock, manager_due);
    }
  }
}

void DockerEngine::Work() {
  MutexLock lock(mu_);
  for (;;) {
    work_.wait(lock, [this]() REQUIRES(mu_) { return ending_ || !queue_.empty(); });
    if (ending_) return;
    const ActionBatch one = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const Outcome outcome = daemon_->worker.Execute(one.action, one.settings);
    lock.lock();
    const auto entry = jobs_.find(one.settings.job_id);
    if (entry != jobs_.end())
      entry->second.job->ApplyOutcome(outcome, options_.clock->Now(), &outbox_);
    manager_due_ = true;
    due_.notify_all();
  }
}

// ---- The daemon's events ----

void DockerEngine::StartListener() {
  if (std::exchange(listening_, true)) return;
  listener_ = std::thread([this] { Listen(); });
}

bool DockerEngine::Sleep(milliseconds time) {
  MutexLock lock(mu_);
  return !changed_.wait_for(lock, time, [this]() REQUIRES(mu_) { return ending_; });
}

void DockerEngine::Listen() {
  // Begin in the past, to include ends before the stream was connected.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string since =
      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count() - 2);
  milliseconds retry = kFirstRetry;
  for (;;) {
    const auto begun = std::chrono::steady_clock::now();
    const Status ended = ListenOnce(&since);
    {
      const MutexLock lock(mu_);
      stream_.reset();
      if (ending_) return;
    }
    if (std::chrono::steady_clock::now() - begun > kLongestRetry) retry = kFirstRetry;
    LogInfo("the event stream of the Docker daemon broke: {}; reconnecting", ended.message());
    if (!Sleep(retry)) return;
    retry = std::min(retry * 2, kLongestRetry);
  }
}

Status DockerEngine::ListenOnce(std::string* since) {
  TRY_ASSIGN(std::unique_ptr<net::HttpStream> opened, daemon_->api->Events(*since));
  const std::shared_ptr<net::HttpStream> stream = std::move(opened);
  {
    const MutexLock lock(mu_);
    if (ending_) return Cancelled("the engine ends");
    stream_ = stream;
  }
  TRY(Compare());
  docker::LineCutter cutter(kMaxEvent);
  for (;;) {
    auto bytes = stream->Next(kEventSilence);
    if (bytes.status().code() == Code::kDeadlineExceeded) {
      TRY(Compare());
      continue;
    }
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) return Unavailable("the daemon closed them");
    std::vector<std::string> lines;
    TRY(cutter.Feed(*bytes, &lines));
    for (const std::string& line : lines) {
      TRY_ASSIGN(const std::optional<docker::ContainerEvent> event, docker::DecodeEvent(line));
      if (!event) continue;
      if (!event->time.empty()) *since = event->time;
      OnContainerEvent(*event);
    }
  }
}

void DockerEngine::OnContainerEvent(const docker::ContainerEvent& event) {
  const bool ended = event.action == "die" || event.action == "destroy";
  const bool paused = event.action == "pause";
  if (!ended && !paused && event.action != "unpause") return;
  const MutexLock lock(mu_);
  const auto entry = jobs_.find(event.task.job);
  if (entry == jobs_.end()) return;
  DockerJob* const job = entry->second.job.get();
  const docker::TaskLabels& task = event.task;
  if (ended) {
    job->OnContainerEnd({task.role, task.index}, task.incarnation);
  } else {
    job->OnPauseChange({task.role, task.index}, task.incarnation, paused, options_.clock->Now());
  }
  manager_due_ = true;
  due_.notify_all();
}

Status DockerEngine::Compare() {
  TRY_ASSIGN(const std::vector<docker::ContainerSummary> all, daemon_->api->List(""));
  std::map<std::string, bool> running;  // whether it is paused
  for (const docker::ContainerSummary& one : all) {
    if (one.running) running[one.id] = one.paused;
  }
  const MutexLock lock(mu_);
  // A container that was started after the list was made is inspected without need.
  for (auto& [id, entry] : jobs_) entry.job->ReconcileRunning(running, options_.clock->Now());
  manager_due_ = true;
  due_.notify_all();
  return Status::Ok();
}

// ---- engine.h ----

Result<DockerEngine::Daemon*> DockerEngine::Connect() {
  const MutexLock lock(connect_mu_);
  if (daemon_ == nullptr) {
    TRY_ASSIGN(auto api, docker::DockerApi::Connect(options_.host));
    TRY_ASSIGN(docker::SpecOptions spec, MakeSpecOptions(options_));
    daemon_ = std::make_unique<Daemon>(std::move(api), std::move(spec));
  }
  return daemon_.get();
}

Result<std::string> DockerEngine::Describe(const DesiredJob& desired) {
  TRY(CheckDesiredJob(desired));
  TRY(docker::CheckContainers(desired));
  TRY_ASSIGN(const docker::SpecOptions spec, MakeSpecOptions(options_));
  return docker::DescribeContainers(spec, desired);
}

Result<Capacity> DockerEngine::GetCapacity() {
  TRY_ASSIGN(Daemon* const daemon, Connect());
  TRY_ASSIGN(const docker::Machine machine, daemon->api->GetMachine());
  return Capacity{machine.cpus, machine.memory_bytes, host::CountGpus()};
}

Result<EntryPoint> DockerEngine::FindEntryPoint(const std::string& image) {
  TRY_ASSIGN(Daemon* const daemon, Connect());
  DesiredJob job;  // without an id: only the engine's destructor cancels its pull
  job.image = image;
  TRY(daemon->worker.EnsureImage(job));
  return daemon->api->ImageEntryPoint(image);
}

Result<JobEntry*> DockerEngine::AddJob(const std::string& job_id, const std::string& dir) {
  if (auto entry = jobs_.find(job_id); entry != jobs_.end()) return &entry->second;
  JobEntry entry;
  entry.dir = dir;
  if (!dir.empty()) {
    TRY(MakeDirectories(EngineDir(dir), 0700));
    TRY_ASSIGN(entry.lock, JobLock::Take(dir));
  }
  docker::DockerJobOptions options;
  options.restart = options_.restart;
  options.remove_grace = options_.remove_grace;
  entry.job = std::make_unique<DockerJob>(job_id, entry.lock.held(), options);
  return &jobs_.emplace(job_id, std::move(entry)).first->second;
}

Status DockerEngine::Apply(const DesiredJob& desired) {
  TRY(CheckDesiredJob(desired));
  TRY(docker::CheckContainers(desired));
  if (desired.job_dir.empty())
    return InvalidArgument("job " + desired.job_id + " has no directory of its own");
  TRY(Connect().status());
  TRY(docker::PrepareHostFiles(desired));
  const MutexLock lock(mu_);
  TRY_ASSIGN(JobEntry* const entry, AddJob(desired.job_id, desired.job_dir));
  if (!entry->job->owned()) {
    jobs_.erase(desired.job_id);
    return FailedPrecondition("job " + desired.job_id +
                              " is already run by another shoal process on this machine");
  }
  if (entry->job->stopping())
    return FailedPrecondition("job " + desired.job_id + " is being stopped");
  entry->job->Apply(desired, options_.clock->Now());
  StartListener();
  manager_due_ = true;
  due_.notify_all();
  return Status::Ok();
}

Result<std::vector<TaskStatus>> DockerEngine::Adopt(const std::string& job_id,
                                                    const std::string& job_dir) {
  TRY(CheckName("job id", job_id));
  TRY_ASSIGN(Daemon* const daemon, Connect());
  TRY_ASSIGN(const std::vector<docker::ContainerSummary> containers, daemon->api->List(job_id));
  const MutexLock lock(mu_);
  if (const auto entry = jobs_.find(job_id); entry != jobs_.end()) return entry->second.job->List();
  const bool any = std::any_of(containers.begin(), containers.end(),
                               [](const auto& container) { return container.running; });
  if (!any) return std::vector<TaskStatus>();
  TRY_ASSIGN(JobEntry* const entry, AddJob(job_id, job_dir));
  (void)entry->job->Adopt(containers, options_.clock->Now());
  StartListener();
  return entry->job->List();
}

Status DockerEngine::Stop(const std::string& job_id, milliseconds grace) {
  TRY(CheckName("job id", job_id));
  TRY_ASSIGN(Daemon* const daemon, Connect());
  TRY(Adopt(job_id, "").status());
  {
    MutexLock lock(mu_);
    if (auto it = jobs_.find(job_id); it != jobs_.end()) {
      it->second.job->Stop(options_.clock->Now() + grace);
      daemon->worker.CancelPulls(job_id);
      manager_due_ = true;
      due_.notify_all();
      const auto gone = [&]() REQUIRES(mu_) {
        auto entry = jobs_.find(job_id);
        const bool quiet = !publishing_ && outbox_.empty();
        return quiet && (entry == jobs_.end() || !entry->second.job->AnyAlive());
      };
      if (!changed_.wait_for(lock, grace + kKillPatience, gone)) {
        return DeadlineExceeded("a container of job " + job_id +
                                " does not end though it was killed; see `docker ps --filter "
                                "label=shoal.dev/job=" +
                                job_id + "`");
      }
    }
  }
  TRY(RemoveAll(job_id));
  daemon->worker.ReleaseGpus(job_id);
  const MutexLock lock(mu_);
  if (auto it = jobs_.find(job_id); it != jobs_.end()) {
    it->second.lock.Remove();
    jobs_.erase(it);
  }
  return Status::Ok();
}

Status DockerEngine::RemoveAll(const std::string& job_id) {
  const auto deadline = std::chrono::steady_clock::now() + kKillPatience;
  for (;;) {
    TRY_ASSIGN(const std::vector<docker::ContainerSummary> left, daemon_->api->List(job_id));
    if (left.empty()) return daemon_->api->RemoveNetworks(job_id);
    std::vector<Status> ends(left.size());
    std::vector<std::thread> removers;
    const size_t width = std::min(left.size(), kWorkers);
    for (size_t first = 0; first < width; ++first) {
      removers.emplace_back([&, first] {
        for (size_t i = first; i < left.size(); i += width)
          ends[i] = daemon_->api->Remove(left[i].id);
      });
    }
    for (std::thread& remover : removers) remover.join();
    for (const Status& end : ends) {
      if (!end.ok() && (!end.retryable() || std::chrono::steady_clock::now() > deadline))
        return end;
    }
    ::poll(nullptr, 0, 20);  // wait for a removal in progress
  }
}

Result<Endpoint> DockerEngine::Dial(const std::string& job_id) {
  std::string dir;
  {
    const MutexLock lock(mu_);
    TRY_ASSIGN(const JobEntry* const entry, FindJob(job_id));
    dir = entry->dir;
    if (entry->job->HasEnded({kCoordinatorRole, 0})) {
      return Unavailable("the coordinator of job " + job_id +
                         " has ended; it is started again if the job has not");
    }
  }
  // An address in a job's own network is reachable from this machine too.
  TRY_ASSIGN(const CoordinatorLocation place, ReadCoordinatorLocation(job_id, dir));
  return place.endpoint;
}

Result<std::string> DockerEngine::TaskLog(const std::string& job_id, const std::string& role,
                                          int index, size_t limit) {
  TRY(CheckName("role", role));
  std::string container;
  {
    const MutexLock lock(mu_);
    TRY_ASSIGN(const JobEntry* const entry, FindJob(job_id));
    container = entry->job->ContainerOf({role, index});
  }
  if (container.empty()) return std::string();
  auto text = daemon_->api->Logs(container, limit);
  if (text.status().code() == Code::kNotFound) return std::string();
  return text;
}

Result<docker::ContainerState> DockerEngine::FindContainer(const std::string& job_id,
                                                           const std::string& role, int index) {
  TRY(CheckName("job id", job_id));
  TRY_ASSIGN(Daemon* const daemon, Connect());
  TRY_ASSIGN(const std::vector<docker::ContainerSummary> containers, daemon->api->List(job_id));
  for (const docker::ContainerSummary& one : containers) {
    if (one.running && one.task.role == role && one.task.index == index)
      return daemon->api->Inspect(one.id);
  }
  return NotFound("no container of " + role + "-" + std::to_string(index) + " of job " + job_id +
                  " runs now; `shoal show " + job_id + "` says how its tasks are");
}

Result<std::unique_ptr<Execution>> DockerEngine::Exec(const std::string& job_id,
                                                      const std::string& role, int index,
                                                      const ExecSpec& spec) {
  TRY_ASSIGN(const docker::ContainerState container, FindContainer(job_id, role, index));
  return docker::ExecInContainer(daemon_->api.get(), container.id, job_id, role, index, spec);
}

Result<UniqueFd> DockerEngine::DialTask(const std::string& job_id, const std::string& role,
                                        int index, uint16_t port) {
  TRY_ASSIGN(const docker::ContainerState container, FindContainer(job_id, role, index));
  if (!container.address.empty()) return ConnectToListener(container.address, port);
  return DialLocally(job_id, role, index, port);
}

}  // namespace

std::unique_ptr<Engine> MakeDockerEngine(DockerEngineOptions options) {
  return std::make_unique<DockerEngine>(std::move(options));
}

}  // namespace shoal::engine
