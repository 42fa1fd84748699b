// Two threads beside the callers': one reads what holders write (inotify, and each second where the
// kernel does not tell), one looks at Marathon: when its events say that something happened, and
// every so often in case one was lost. A third for each Marathon listens to its events.
#include "engine/marathon/marathon_engine.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "engine/agent/directory_watcher.h"
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

constexpr milliseconds kReadAgain{1000};
constexpr milliseconds kLookGap{100};      // between two looks at Marathon
constexpr milliseconds kWaitingGap{1000};  // … while something has to start or to go
constexpr milliseconds kQuietGap{15'000};  // … while all runs
// How long holders may take beyond the grace to end what they hold, before the group goes anyway.
constexpr milliseconds kHolderPatience{3'000};
constexpr milliseconds kGonePatience{60'000};
constexpr milliseconds kConflictPatience{30'000};
constexpr milliseconds kAskAgain{100};

// A Marathon and those who listen to it.
struct Cluster {
  std::unique_ptr<MarathonApi> api;
  std::unique_ptr<marathon::EventListener> listener;
};

class MarathonEngine final : public PublishingEngine {
 public:
  MarathonEngine(MarathonEngineOptions options, DirectoryWatcher changes)
      : options_(std::move(options)), changes_(std::move(changes)) {
    reader_ = std::thread([this] { ReadExecutorEvents(); });
    looker_ = std::thread([this] { LookAtMarathon(); });
  }
  ~MarathonEngine() override {
    {
      std::lock_guard lock(mu_);
      ending_ = true;
    }
    changes_.Wake();
    changed_.notify_all();
    reader_.join();
    looker_.join();
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
  Result<std::string> TaskLog(const std::string& job_id, const std::string& role, int index,
                              size_t limit) override;
  Result<std::unique_ptr<Execution>> Exec(const std::string& job_id, const std::string& role,
                                          int index, const ExecSpec& spec) override;
  Result<UniqueFd> DialTask(const std::string& job_id, const std::string& role, int index,
                            uint16_t port) override;

 private:
  struct JobEntry {
    std::unique_ptr<MarathonJob> job;
    Cluster* cluster = nullptr;
    std::set<std::string> deployments;  // that we began
    bool sent = false;                  // … one of them before Marathon was asked last
  };

  void ReadExecutorEvents();
  void LookAtMarathon();
  void LookAt(const std::string& job_id);
  std::vector<TaskEvent> TakeApps(const std::string& job_id, const std::vector<marathon::App>& apps,
                                  const std::map<MarathonJob::Key, std::string>& running,
                                  std::vector<std::string>* surplus, bool* group_shrinks);
  void Listen(Cluster* cluster);  // under mu_
  Result<Cluster*> ClusterOf(const job::Marathon& settings);
  // That of a job of another process of ours, as the job's directory says.
  Result<Cluster*> ClusterOfRecord(const std::string& job_id);
  Status SendGroup(const std::string& job_id);
  Status RemoveGroup(MarathonApi* api, const std::string& job_id);
  // NotFound with where it is, if that is not here.
  Status Elsewhere(const std::string& job_id, const std::string& role, int index,
                   const Status& here);

  const MarathonEngineOptions options_;
  const DirectoryWatcher changes_;

  std::mutex connect_mu_;
  std::map<std::string, Cluster> clusters_;  // by URL; guarded by connect_mu_, none is removed
  std::mutex mu_;
  std::condition_variable changed_;                // something was read or said, or we end
  std::map<std::string, JobEntry> jobs_;           // guarded by mu_
  std::map<std::string, marathon::Failure> said_;  // guarded by mu_: how Mesos tasks ended
  bool look_ = false;                              // guarded by mu_
  bool ending_ = false;                            // guarded by mu_
  int publishing_ = 0;  // guarded by mu_: threads that tell what is in jobs_ already
  std::thread reader_;
  std::thread looker_;
};

// ---- the threads ----

void MarathonEngine::ReadExecutorEvents() {
  for (;;) {
    std::vector<TaskEvent> events;
    std::optional<milliseconds> timeout;
    {
      std::lock_guard lock(mu_);
      if (ending_) return;
      for (auto& [id, held] : jobs_) {
        const std::vector<TaskEvent> read = held.job->Read();
        events.insert(events.end(), read.begin(), read.end());
      }
      if (!jobs_.empty()) timeout = kReadAgain;
      ++publishing_;
    }
    Publish(events);
    {
      std::lock_guard lock(mu_);
      --publishing_;
      for (const TaskEvent& event : events) look_ = look_ || event.phase == TaskPhase::kEnded;
    }
    changed_.notify_all();
    changes_.Wait(timeout);
  }
}

void MarathonEngine::LookAtMarathon() {
  TimePoint looked{};
  for (;;) {
    std::vector<std::string> ids;
    {
      std::unique_lock lock(mu_);
      for (;;) {
        if (ending_) return;
        bool waits = false;
        for (const auto& [id, held] : jobs_) waits = waits || held.job->Waits();
        const Duration gap = look_ ? kLookGap : waits ? kWaitingGap : kQuietGap;
        const Duration left = looked + gap - options_.clock->Now();
        if (!jobs_.empty() && left <= Duration(0)) break;
        if (jobs_.empty()) {
          changed_.wait(lock);
        } else {
          changed_.wait_for(lock, left);
        }
      }
      look_ = false;
      for (const auto& [id, held] : jobs_) ids.push_back(id);
    }
    for (const std::string& id : ids) LookAt(id);
    looked = options_.clock->Now();
  }
}

void MarathonEngine::LookAt(const std::string& job_id) {
  MarathonApi* api = nullptr;
  bool waits = false;
  std::map<MarathonJob::Key, std::string> running;
  {
    std::lock_guard lock(mu_);
    const auto held = jobs_.find(job_id);
    if (held == jobs_.end() || held->second.job->stopping() || held->second.job->over()) return;
    api = held->second.cluster->api.get();
    // A group that is sent while we ask is not gone because the answer has none.
    held->second.sent = !held->second.deployments.empty();
    running = held->second.job->Running();
    waits = held->second.job->Waits();
  }
  const auto apps = api->AppsOf(job_id);
  if (!apps.ok()) return LogInfo("{}", apps.status().message());  // nothing is known
  std::vector<std::string> surplus;
  bool group_shrinks = false;
  std::vector<TaskEvent> events = TakeApps(job_id, *apps, running, &surplus, &group_shrinks);
  if (waits) {
    const auto queue = api->Queue();
    std::lock_guard lock(mu_);
    const auto held = jobs_.find(job_id);
    if (queue.ok() && held != jobs_.end()) {
      const std::vector<TaskEvent> told = held->second.job->TellWaiting(*queue);
      events.insert(events.end(), told.begin(), told.end());
    }
  }
  Publish(events);
  if (!surplus.empty()) {
    const auto killed = api->KillTasks(surplus, true);
    if (!killed.ok()) LogInfo("{}", killed.status().message());
  } else if (group_shrinks) {  // and it was applied by us
    if (const Status sent = SendGroup(job_id); !sent.ok()) LogInfo("{}", sent.message());
  }
}

std::vector<TaskEvent> MarathonEngine::TakeApps(
    const std::string& job_id, const std::vector<marathon::App>& apps,
    const std::map<MarathonJob::Key, std::string>& running, std::vector<std::string>* surplus,
    bool* group_shrinks) {
  std::lock_guard lock(mu_);
  const auto held = jobs_.find(job_id);
  if (held == jobs_.end() || held->second.job->stopping()) return {};
  MarathonJob* const job = held->second.job.get();
  std::vector<TaskEvent> events = job->Read();
  if (apps.empty() && held->second.sent) {
    const std::vector<TaskEvent> over =
        job->OverWith("its group " + marathon::GroupId(job->settings().marathon, job_id) +
                      " is gone from Marathon; somebody else removed it");
    events.insert(events.end(), over.begin(), over.end());
    return events;
  }
  const std::vector<TaskEvent> lost = job->Look(apps, running, said_);
  events.insert(events.end(), lost.begin(), lost.end());
  *surplus = job->Surplus(apps, group_shrinks);
  *group_shrinks = *group_shrinks && !job->settings().job_id.empty();
  return events;
}

// ---- engine.h ----

Result<Cluster*> MarathonEngine::ClusterOf(const job::Marathon& settings) {
  const char* const variable = std::getenv("SHOAL_MARATHON_URL");
  std::string url = settings.url.empty() ? options_.url : settings.url;
  if (url.empty() && variable != nullptr) url = variable;
  if (url.empty())
    return InvalidArgument(
        "it is not said where Marathon is: set SHOAL_MARATHON_URL, or marathon.url in the job "
        "file: http://leader.mesos:8080");
  std::lock_guard lock(connect_mu_);
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
    std::lock_guard lock(mu_);
    JobEntry& held = jobs_[desired.job_id];
    fresh = held.job == nullptr;
    if (fresh) {
      auto made = MarathonJob::Make(desired.job_id, desired.job_dir);
      if (!made.ok()) {
        jobs_.erase(desired.job_id);
        return made.status();
      }
      held.job = std::move(*made);
      held.cluster = cluster;
      changes_.Add(marathon::SlotsDir(held.job->dir()));
    }
    if (held.job->stopping())
      return FailedPrecondition("job " + desired.job_id + " is being stopped");
    if (held.job->over())
      return FailedPrecondition("job " + desired.job_id + " is gone from Marathon");
    TRY(held.job->Order(desired, std::move(orders)));
    Listen(cluster);
  }
  changes_.Wake();
  const Status sent = SendGroup(desired.job_id);
  if (!sent.ok() && fresh) {
    std::lock_guard lock(mu_);
    if (const auto held = jobs_.find(desired.job_id); held != jobs_.end()) {
      held->second.job->RemoveRecords();
      jobs_.erase(held);
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
        std::lock_guard lock(mu_);
        look_ = true;
        if (said_.size() > kMostSaid) said_.clear();
        if (!event.task.empty())
          said_[event.task] = {event.task, event.host, event.message, event.status};
        changed_.notify_all();
      });
}

// What we began ourselves is overtaken at once; for what somebody else began we wait.
Status MarathonEngine::SendGroup(const std::string& job_id) {
  const TimePoint until = options_.clock->Now() + kConflictPatience;
  bool force = false;
  for (;;) {
    json::object group;
    MarathonApi* api = nullptr;
    {
      std::lock_guard lock(mu_);
      const auto held = jobs_.find(job_id);
      if (held == jobs_.end()) return Cancelled("the job was stopped");
      const std::string& asked = held->second.job->settings().marathon.program;
      group = held->second.job->Group(asked.empty() ? options_.program : asked);
      api = held->second.cluster->api.get();
    }
    TRY_ASSIGN(const MarathonApi::Change change, api->PutGroup(group, force));
    std::unique_lock lock(mu_);
    const auto held = jobs_.find(job_id);
    if (held == jobs_.end()) return Cancelled("the job was stopped");
    if (change.conflicting.empty()) {
      held->second.deployments.insert(change.deployment);
      return Status::Ok();
    }
    const auto& ours = held->second.deployments;
    force = std::all_of(change.conflicting.begin(), change.conflicting.end(),
                        [&](const std::string& id) { return ours.contains(id); });
    if (force) continue;
    if (options_.clock->Now() > until)
      return FailedPrecondition(
          "Marathon still runs the deployment " + change.conflicting.front() +
          " of somebody else's, which holds the job's group; `DELETE /v2/deployments/" +
          change.conflicting.front() + "` ends it");
    if (changed_.wait_for(lock, kWaitingGap, [this] { return ending_; }))
      return Cancelled("the engine ends");
  }
}

Result<std::vector<TaskStatus>> MarathonEngine::Adopt(const std::string& job_id,
                                                      const std::string& job_dir) {
  TRY(CheckName("job id", job_id));
  {
    std::lock_guard lock(mu_);
    if (const auto known = jobs_.find(job_id); known != jobs_.end())
      return known->second.job->List();
  }
  TRY_ASSIGN(Cluster* const cluster, ClusterOf(marathon::ReadSettings(job_dir)));
  TRY_ASSIGN(const std::vector<marathon::App> apps, cluster->api->AppsOf(job_id));
  if (apps.empty()) return std::vector<TaskStatus>();
  auto found = MarathonJob::Find(job_id, job_dir.empty() ? apps[0].dir : job_dir);
  if (!found.ok()) return found.status();
  std::lock_guard lock(mu_);
  JobEntry& held = jobs_[job_id];
  if (held.job == nullptr) {
    held.job = std::move(*found);
    held.cluster = cluster;
    held.deployments.insert("");  // of an earlier engine
  }
  Listen(cluster);
  changes_.Add(marathon::SlotsDir(held.job->dir()));
  changed_.notify_all();
  changes_.Wake();
  return held.job->List();
}

Status MarathonEngine::Stop(const std::string& job_id, milliseconds grace) {
  TRY(CheckName("job id", job_id));
  Cluster* cluster = nullptr;
  {
    std::unique_lock lock(mu_);
    if (const auto it = jobs_.find(job_id); it != jobs_.end()) {
      MarathonJob* const job = it->second.job.get();
      cluster = it->second.cluster;
      if (!job->over()) {
        TRY(job->OrderStop(grace));
        const auto done = [&] { return publishing_ == 0 && !job->AnyRunning(); };
        changed_.wait_for(lock, grace + kHolderPatience, done);
      }
    }
  }
  if (cluster == nullptr) {
    TRY_ASSIGN(cluster, ClusterOfRecord(job_id));
  }
  TRY(RemoveGroup(cluster->api.get(), job_id));
  std::vector<TaskEvent> events;
  {
    std::lock_guard lock(mu_);
    const auto it = jobs_.find(job_id);
    if (it == jobs_.end()) return Status::Ok();
    events = it->second.job->Read();
    const std::vector<TaskEvent> untold = it->second.job->EndAll();
    events.insert(events.end(), untold.begin(), untold.end());
    it->second.job->RemoveRecords();
    jobs_.erase(it);
  }
  Publish(events);
  return Status::Ok();
}

// Whatever group it is in. Marathon may forget the apps before their Mesos tasks have ended: the
// deployment that removes them tells.
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
    std::unique_lock lock(mu_);
    if (changed_.wait_for(lock, pause, [this] { return ending_; }))
      return Cancelled("the engine ends");
    pause = std::min(pause * 2, kAskAgain);
  }
}

Result<Endpoint> MarathonEngine::Dial(const std::string& job_id) {
  std::string dir, service;
  {
    std::lock_guard lock(mu_);
    const auto job = jobs_.find(job_id);
    if (job == jobs_.end()) return NotFound("no job " + job_id + " is run by this engine");
    dir = job->second.job->dir();
    service = marathon::CoordinatorService(job->second.job->settings().marathon, job_id);
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

Result<std::string> MarathonEngine::TaskLog(const std::string& job_id, const std::string& role,
                                            int index, size_t limit) {
  TRY(CheckName("role", role));
  std::string dir;
  {
    std::lock_guard lock(mu_);
    const auto job = jobs_.find(job_id);
    if (job == jobs_.end()) return NotFound("no job " + job_id + " is run by this engine");
    dir = job->second.job->dir();
  }
  return ReadTail(TaskLogPath(dir, role, index), limit);
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
