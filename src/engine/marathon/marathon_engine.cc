// Two threads: reader_ reads the executors' event logs (inotify, and once a second because inotify
// misses changes of other hosts); poller_ polls Marathon, when an event triggers it and
// periodically in case an event was lost. One more thread per Marathon reads its event stream. All
// job state is guarded by mu_, which is never held during a call to Marathon or to a watch.
#include "engine/marathon/marathon_engine.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "engine/agent/agent_engine.h"
#include "engine/exec/local_exec.h"
#include "engine/marathon/event_listener.h"
#include "engine/marathon/marathon_api.h"
#include "engine/marathon/marathon_helper.h"
#include "engine/marathon/marathon_job.h"
#include "engine/tasks/coordinator_location.h"
#include "engine/tasks/event_hub.h"
#include "engine/tasks/job_files.h"
#include "host/cgroup/cgroup.h"
#include "net/srv_record.h"

namespace shoal::engine {
namespace {

using marathon::MarathonApi;
using marathon::MarathonJob;
using std::chrono::milliseconds;

constexpr milliseconds kPollGap{100};      // minimum between two polls of Marathon
constexpr milliseconds kWaitingGap{1000};  // interval while a task has to start or to end
constexpr milliseconds kQuietGap{15'000};  // interval while all tasks run
// Time beyond the grace that executors get to end their tasks before the group is removed.
constexpr milliseconds kHolderPatience{3'000};
constexpr milliseconds kGonePatience{60'000};
constexpr milliseconds kConflictPatience{30'000};
constexpr milliseconds kAskAgain{100};

// A Marathon and the listener of its events.
struct Cluster {
  std::unique_ptr<MarathonApi> api;
  std::unique_ptr<marathon::EventListener> listener;
};

// What the engine keeps of a job.
struct JobEntry {
  std::unique_ptr<MarathonJob> job;
  Cluster* cluster = nullptr;
  std::set<std::string> deployments;  // started by this engine
  bool sent = false;                  // one of them was started before the last poll
};

// Clusters are created on first use and live as long as the engine. A job is added by Apply or
// Adopt and removed at the end of Stop.
class MarathonEngine final : public AgentEngine<MarathonJob, JobEntry>, public Executes {
 public:
  MarathonEngine(MarathonEngineOptions options, DirectoryWatcher changes)
      : AgentEngine(std::move(changes)), options_(std::move(options)) {
    StartReader();
    poller_ = std::thread([this] { PollMarathon(); });
  }
  ~MarathonEngine() override {
    StopReader();
    poller_.join();
    clusters_.clear();
  }

  std::string name() const override { return "marathon"; }
  bool HasOwnQueue() const override { return true; }
  Result<Capacity> GetCapacity() override {
    TRY_ASSIGN(Cluster* const cluster, ClusterOf({}));
    return cluster->api->Numbers();
  }
  Status Apply(const DesiredJob& desired) override;
  Result<std::string> Describe(const DesiredJob& desired) override;
  Status Stop(const std::string& job_id, milliseconds grace) override;
  Result<std::vector<TaskStatus>> Adopt(const std::string& job_id,
                                        const std::string& job_dir) override;
  Result<Endpoint> Dial(const std::string& job_id) override;
  Executes* executes() override { return this; }
  Result<std::unique_ptr<Execution>> Exec(const std::string& job_id, const std::string& role,
                                          int index, const ExecSpec& spec) override;
  Result<UniqueFd> DialTask(const std::string& job_id, const std::string& role, int index,
                            uint16_t port) override;

 private:
  MarathonJob& JobOf(const JobEntry& entry) const override { return *entry.job; }
  // An end of a task may leave a Mesos task to kill: triggers a poll.
  void OnPublished(const std::vector<TaskEvent>& events) override REQUIRES(mu_);
  void PollMarathon();
  void PollJob(const std::string& job_id);
  std::vector<TaskEvent> ApplyApps(const std::string& job_id,
                                   const std::vector<marathon::App>& apps,
                                   const std::map<MarathonJob::Key, std::string>& running,
                                   std::vector<std::string>* surplus, bool* group_differs);
  void Listen(Cluster* cluster) REQUIRES(mu_);
  Result<Cluster*> ClusterOf(const job::Marathon& settings);
  // The cluster of another controller's job, by the records in the job's directory.
  Result<Cluster*> ClusterOfRecord(const std::string& job_id);
  Status SendGroup(const std::string& job_id);
  Status RemoveGroup(MarathonApi* api, const std::string& job_id);
  // NotFound with the task's host if it runs on another one.
  Status Elsewhere(const std::string& job_id, const std::string& role, int index,
                   const Status& here);

  const MarathonEngineOptions options_;

  Mutex connect_mu_;
  std::map<std::string, Cluster> clusters_;  // by URL; guarded by connect_mu_, none is removed
  std::map<std::string, marathon::Failure> said_ GUARDED_BY(mu_);  // how Mesos tasks ended
  bool look_ GUARDED_BY(mu_) = false;
  std::thread poller_;
};

// ---- the threads ----

void MarathonEngine::OnPublished(const std::vector<TaskEvent>& events) {
  for (const TaskEvent& event : events) look_ = look_ || event.phase == TaskPhase::kEnded;
}

void MarathonEngine::PollMarathon() {
  TimePoint looked{};
  for (;;) {
    std::vector<std::string> ids;
    {
      MutexLock lock(mu_);
      for (;;) {
        if (ending_) return;
        bool waits = false;
        for (const auto& [id, entry] : jobs_) waits = waits || entry.job->Waits();
        const Duration gap = look_ ? kPollGap : waits ? kWaitingGap : kQuietGap;
        const Duration left = looked + gap - options_.clock->Now();
        if (!jobs_.empty() && left <= Duration(0)) break;
        if (jobs_.empty()) {
          changed_.wait(lock);
        } else {
          changed_.wait_for(lock, left);
        }
      }
      look_ = false;
      for (const auto& [id, entry] : jobs_) ids.push_back(id);
    }
    for (const std::string& id : ids) PollJob(id);
    looked = options_.clock->Now();
  }
}

void MarathonEngine::PollJob(const std::string& job_id) {
  MarathonApi* api = nullptr;
  bool waits = false;
  std::map<MarathonJob::Key, std::string> running;
  {
    const MutexLock lock(mu_);
    const auto entry = jobs_.find(job_id);
    if (entry == jobs_.end() || entry->second.job->stopping() || entry->second.job->over()) return;
    api = entry->second.cluster->api.get();
    // A group that is sent during the query may be missing from the response.
    entry->second.sent = !entry->second.deployments.empty();
    running = entry->second.job->Running();
    waits = entry->second.job->Waits();
  }
  const auto apps = api->AppsOf(job_id);
  if (!apps.ok()) return LogInfo("{}", apps.status().message());  // state unknown: no change
  std::vector<std::string> surplus;
  bool group_differs = false;
  std::vector<TaskEvent> events = ApplyApps(job_id, *apps, running, &surplus, &group_differs);
  if (waits) {
    const auto queue = api->Queue();
    const MutexLock lock(mu_);
    const auto entry = jobs_.find(job_id);
    if (queue.ok() && entry != jobs_.end()) {
      const std::vector<TaskEvent> told = entry->second.job->ReportPendingApps(*queue);
      events.insert(events.end(), told.begin(), told.end());
    }
  }
  Publish(events);
  if (!surplus.empty()) {
    const auto killed = api->KillTasks(surplus, true);
    if (!killed.ok()) LogInfo("{}", killed.status().message());
  } else if (group_differs) {  // and it was applied by us
    if (const Status sent = SendGroup(job_id); !sent.ok()) LogInfo("{}", sent.message());
  }
}

std::vector<TaskEvent> MarathonEngine::ApplyApps(
    const std::string& job_id, const std::vector<marathon::App>& apps,
    const std::map<MarathonJob::Key, std::string>& running, std::vector<std::string>* surplus,
    bool* group_differs) {
  const MutexLock lock(mu_);
  const auto entry = jobs_.find(job_id);
  if (entry == jobs_.end() || entry->second.job->stopping()) return {};
  MarathonJob* const job = entry->second.job.get();
  std::vector<TaskEvent> events = job->ReadEvents();
  if (apps.empty() && entry->second.sent) {
    const std::vector<TaskEvent> over =
        job->MarkEnded("its group " + marathon::GroupId(job->settings().marathon, job_id) +
                       " was removed from Marathon by another party");
    events.insert(events.end(), over.begin(), over.end());
    return events;
  }
  const std::vector<TaskEvent> lost = job->ReconcileApps(apps, running, said_);
  events.insert(events.end(), lost.begin(), lost.end());
  *surplus = job->Surplus(apps, group_differs);
  *group_differs = *group_differs && !job->settings().job_id.empty();
  return events;
}

// ---- engine.h ----

Result<Cluster*> MarathonEngine::ClusterOf(const job::Marathon& settings) {
  const char* const variable = std::getenv("SHOAL_MARATHON_URL");
  std::string url = settings.url.empty() ? options_.url : settings.url;
  if (url.empty() && variable != nullptr) url = variable;
  if (url.empty())
    return InvalidArgument(
        "the address of Marathon is not configured: set SHOAL_MARATHON_URL, or marathon.url in the "
        "job "
        "file: http://leader.mesos:8080");
  const MutexLock lock(connect_mu_);
  Cluster& cluster = clusters_[url];
  if (cluster.api == nullptr) {
    TRY_ASSIGN(const marathon::Credentials credentials, marathon::CredentialsFromEnvironment());
    TRY_ASSIGN(cluster.api, MarathonApi::Make(url, settings.authorities, credentials));
  }
  return &cluster;
}

Result<Cluster*> MarathonEngine::ClusterOfRecord(const std::string& job_id) {
  return ClusterOf(options_.job_dir ? marathon::ReadSettings(options_.job_dir(job_id))
                                    : job::Marathon());
}

Result<std::string> MarathonEngine::Describe(const DesiredJob& desired) {
  TRY(CheckDesiredJob(desired));
  TRY(marathon::CheckSettings(desired));
  const std::string& asked = desired.marathon.program;
  const json::object group = marathon::MakeGroup(desired, marathon::RoleRequirements(desired),
                                                 asked.empty() ? options_.program : asked);
  const std::string id = marathon::GroupId(desired.marathon, desired.job_id);
  return ToPrettyText(group) + "\n# Sent by PUT /v2/groups" + id +
         ", removed by DELETE /v2/groups" + id + "?force=true\n";
}

Status MarathonEngine::Apply(const DesiredJob& desired) {
  TRY(CheckDesiredJob(desired));
  TRY(marathon::CheckSettings(desired));
  TRY_ASSIGN(Cluster* const cluster, ClusterOf(desired.marathon));
  DesiredState orders;
  orders.grace = options_.remove_grace;
  orders.restart = options_.restart;
  orders.program = options_.program;
  bool fresh = false;
  {
    const MutexLock lock(mu_);
    JobEntry& entry = jobs_[desired.job_id];
    fresh = entry.job == nullptr;
    if (fresh) {
      auto made = MarathonJob::Make(desired.job_id, desired.job_dir);
      if (!made.ok()) {
        jobs_.erase(desired.job_id);
        return made.status();
      }
      entry.job = std::move(*made);
      entry.cluster = cluster;
      changes_.Add(marathon::SlotsDir(entry.job->dir()));
    }
    if (entry.job->stopping())
      return FailedPrecondition("job " + desired.job_id + " is being stopped");
    if (entry.job->over())
      return FailedPrecondition("job " + desired.job_id + " is gone from Marathon");
    TRY(entry.job->WriteDesired(desired, std::move(orders)));
    Listen(cluster);
  }
  changes_.Wake();
  const Status sent = SendGroup(desired.job_id);
  if (!sent.ok() && fresh) {
    const MutexLock lock(mu_);
    if (const auto entry = jobs_.find(desired.job_id); entry != jobs_.end()) {
      entry->second.job->RemoveRecords();
      jobs_.erase(entry);
    }
  }
  changed_.notify_all();
  return sent;
}

void MarathonEngine::Listen(Cluster* cluster) {
  if (cluster->listener != nullptr) return;
  cluster->listener = std::make_unique<marathon::EventListener>(
      cluster->api.get(), [this](const marathon::Event& event) {
        constexpr size_t kMostSaid = 10'000;
        const MutexLock lock(mu_);
        look_ = true;
        if (said_.size() > kMostSaid) said_.clear();
        if (!event.task.empty())
          said_[event.task] = {event.task, event.host, event.message, event.status};
        changed_.notify_all();
      });
}

// Overrides conflicting deployments of this engine at once, and waits for those of others.
Status MarathonEngine::SendGroup(const std::string& job_id) {
  const TimePoint until = options_.clock->Now() + kConflictPatience;
  bool force = false;
  for (;;) {
    json::object group;
    MarathonApi* api = nullptr;
    {
      const MutexLock lock(mu_);
      const auto entry = jobs_.find(job_id);
      if (entry == jobs_.end()) return Cancelled("the job was stopped");
      const std::string& asked = entry->second.job->settings().marathon.program;
      group = entry->second.job->Group(asked.empty() ? options_.program : asked);
      api = entry->second.cluster->api.get();
    }
    TRY_ASSIGN(const MarathonApi::Change change, api->PutGroup(group, force));
    MutexLock lock(mu_);
    const auto entry = jobs_.find(job_id);
    if (entry == jobs_.end()) return Cancelled("the job was stopped");
    if (change.conflicting.empty()) {
      entry->second.deployments.insert(change.deployment);
      return Status::Ok();
    }
    const auto& ours = entry->second.deployments;
    force = std::all_of(change.conflicting.begin(), change.conflicting.end(),
                        [&](const std::string& id) { return ours.contains(id); });
    if (force) continue;
    if (options_.clock->Now() > until)
      return FailedPrecondition(
          "Marathon still runs the deployment " + change.conflicting.front() +
          ", which Shoal did not start and which locks the job's group; `DELETE /v2/deployments/" +
          change.conflicting.front() + "` ends it");
    if (changed_.wait_for(lock, kWaitingGap, [this]() REQUIRES(mu_) { return ending_; }))
      return Cancelled("the engine ends");
  }
}

Result<std::vector<TaskStatus>> MarathonEngine::Adopt(const std::string& job_id,
                                                      const std::string& job_dir) {
  TRY(CheckName("job id", job_id));
  {
    const MutexLock lock(mu_);
    if (const auto known = jobs_.find(job_id); known != jobs_.end())
      return known->second.job->List();
  }
  TRY_ASSIGN(Cluster* const cluster, ClusterOf(marathon::ReadSettings(job_dir)));
  TRY_ASSIGN(const std::vector<marathon::App> apps, cluster->api->AppsOf(job_id));
  if (apps.empty()) return std::vector<TaskStatus>();
  auto found = MarathonJob::Find(job_id, job_dir.empty() ? apps[0].dir : job_dir);
  if (!found.ok()) return found.status();
  const MutexLock lock(mu_);
  JobEntry& entry = jobs_[job_id];
  if (entry.job == nullptr) {
    entry.job = std::move(*found);
    entry.cluster = cluster;
    entry.deployments.insert("");  // of an earlier engine
  }
  Listen(cluster);
  changes_.Add(marathon::SlotsDir(entry.job->dir()));
  changed_.notify_all();
  changes_.Wake();
  return entry.job->List();
}

Status MarathonEngine::Stop(const std::string& job_id, milliseconds grace) {
  TRY(CheckName("job id", job_id));
  Cluster* cluster = nullptr;
  {
    MutexLock lock(mu_);
    if (const auto it = jobs_.find(job_id); it != jobs_.end()) {
      MarathonJob* const job = it->second.job.get();
      cluster = it->second.cluster;
      if (!job->over()) {
        TRY(job->WriteStop(grace));
        const auto done = [&]() REQUIRES(mu_) { return publishing_ == 0 && !job->AnyRunning(); };
        changed_.wait_for(lock, grace + kHolderPatience, done);
      }
    }
  }
  if (cluster == nullptr) {
    TRY_ASSIGN(cluster, ClusterOfRecord(job_id));
  }
  TRY(RemoveGroup(cluster->api.get(), job_id));
  FinishStopped(job_id);
  return Status::Ok();
}

// Removes the group that contains the job's apps, whatever its name. Marathon may drop the apps
// before their Mesos tasks have ended, so this waits for the deployment that removes them.
Status MarathonEngine::RemoveGroup(MarathonApi* api, const std::string& job_id) {
  const TimePoint until = options_.clock->Now() + kGonePatience;
  std::string group, deployment;
  milliseconds pause = kAskAgain / 10;
  for (;;) {
    TRY_ASSIGN(const std::vector<marathon::App> apps, api->AppsOf(job_id));
    if (!apps.empty() && deployment.empty()) {
      group = apps[0].id.substr(0, apps[0].id.rfind('/'));
      TRY_ASSIGN(deployment, api->DeleteGroup(group));
    }
    if (apps.empty()) {
      TRY_ASSIGN(const std::vector<std::string> active, api->Deployments());
      if (std::find(active.begin(), active.end(), deployment) == active.end()) return Status::Ok();
    }
    if (options_.clock->Now() > until)
      return DeadlineExceeded("Marathon's group " + group + " of job " + job_id +
                              " does not go though it was removed; GET /v2/deployments says why");
    MutexLock lock(mu_);
    if (changed_.wait_for(lock, pause, [this]() REQUIRES(mu_) { return ending_; }))
      return Cancelled("the engine ends");
    pause = std::min(pause * 2, kAskAgain);
  }
}

Result<Endpoint> MarathonEngine::Dial(const std::string& job_id) {
  std::string dir, service;
  {
    const MutexLock lock(mu_);
    TRY_ASSIGN(const JobEntry* const entry, FindJob(job_id));
    dir = entry->job->dir();
    service = marathon::CoordinatorService(entry->job->settings().marathon, job_id);
  }
  const auto place = ReadCoordinatorLocation(job_id, dir);
  if (place.ok()) return place->endpoint;
  const char* const dns = std::getenv(marathon::kDnsVariable);
  if (dns == nullptr || service.empty()) return place.status();
  constexpr std::chrono::seconds kDnsPatience{1};
  TRY_ASSIGN(const auto found, net::LookUpSrv(service, dns, kDnsPatience));
  const net::Service& first = found.front();
  return Endpoint{first.address.empty() ? first.target : first.address, first.port};
}

Status MarathonEngine::Elsewhere(const std::string& job_id, const std::string& role, int index,
                                 const Status& here) {
  if (here.code() != Code::kNotFound) return here;
  const auto cluster = ClusterOfRecord(job_id);
  if (!cluster.ok()) return here;
  const auto apps = (*cluster)->api->AppsOf(job_id);
  if (!apps.ok() || apps->empty()) return here;
  auto found = MarathonJob::Find(job_id, apps->front().dir);
  if (!found.ok()) return here;
  const std::string mesos_task = (*found)->MesosTaskOf(role, index);
  for (const marathon::App& app : *apps) {
    for (const marathon::MesosTask& task : app.tasks) {
      if (task.id == mesos_task)
        return NotFound(role + "-" + std::to_string(index) + " of job " + job_id + " runs on " +
                        task.host + "; under Marathon tasks are reached from their own host alone");
    }
  }
  return here;
}

Result<std::unique_ptr<Execution>> MarathonEngine::Exec(const std::string& job_id,
                                                        const std::string& role, int index,
                                                        const ExecSpec& spec) {
  auto started = ExecLocally(job_id, role, index, spec, host::FindCgroups().Bases());
  if (!started.ok()) return Elsewhere(job_id, role, index, started.status());
  return started;
}

Result<UniqueFd> MarathonEngine::DialTask(const std::string& job_id, const std::string& role,
                                          int index, uint16_t port) {
  auto socket = DialLocally(job_id, role, index, port);
  if (!socket.ok()) return Elsewhere(job_id, role, index, socket.status());
  return socket;
}

}  // namespace

Result<std::unique_ptr<Engine>> MakeMarathonEngine(MarathonEngineOptions options) {
  TRY_ASSIGN(DirectoryWatcher changes, DirectoryWatcher::Make("the Marathon engine"));
  return std::unique_ptr<Engine>(
      std::make_unique<MarathonEngine>(std::move(options), std::move(changes)));
}

}  // namespace shoal::engine
