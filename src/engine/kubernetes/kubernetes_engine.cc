// The methods of Engine send objects (objects.h, plan_jobs.h) and wait only for the server's
// replies. One thread per job follows its pods (pod_informer.h); publisher_ delivers events to
// watches.
#include "engine/kubernetes/kubernetes_engine.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "engine/exec/remote_exec.h"
#include "engine/kubernetes/image_volumes.h"
#include "engine/kubernetes/kube_client.h"
#include "engine/kubernetes/kube_exec.h"
#include "engine/kubernetes/network_policy.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/plan_jobs.h"
#include "engine/kubernetes/pod_informer.h"
#include "engine/kubernetes/pod_relay.h"
#include "engine/tasks/event_hub.h"
#include "engine/tasks/job_files.h"

namespace shoal::engine {
namespace {

using namespace kubernetes;  // NOLINT: this file is where they meet
using std::chrono::milliseconds;

constexpr milliseconds kEndPatience{60'000};

// The cluster of a job, recorded in the job's directory for adoption after a crash.
struct ClusterRecord {
  std::string context;
  std::string name_space;
};

std::filesystem::path ClusterRecordPath(const std::string& job_dir) {
  return EngineDir(job_dir) / "kubernetes.json";
}

ClusterRecord ReadClusterRecord(const std::string& job_dir) {
  ClusterRecord place;
  if (job_dir.empty()) return place;
  constexpr size_t kMaxFile = 4096;
  const auto text = ReadFile(ClusterRecordPath(job_dir), kMaxFile);
  const auto object = ParseJsonObject(text.ok() ? *text : "{}");
  if (!object.ok()) return place;
  place.context = GetStringOr(*object, "context", "");
  place.name_space = GetStringOr(*object, "namespace", "");
  return place;
}

Status WriteClusterRecord(const std::string& job_dir, const ClusterRecord& place) {
  if (job_dir.empty()) return Status::Ok();
  TRY(MakeDirectories(EngineDir(job_dir), 0700));
  const json::object object{{"context", place.context}, {"namespace", place.name_space}};
  return WriteFileAtomically(ClusterRecordPath(job_dir), ToText(object) + "\n", 0600);
}

// Makes several calls concurrently, in any order. Returns the first error; after it no call is
// started.
Status CallAll(const std::vector<std::function<Status()>>& calls) {
  constexpr size_t kAtOnce = 8;
  std::atomic<size_t> next{0};
  Mutex mu;
  Status first;
  const auto work = [&] {
    for (size_t i = next++; i < calls.size(); i = next++) {
      const Status status = calls[i]();
      if (status.ok()) continue;
      const MutexLock lock(mu);
      if (first.ok()) first = status;
      next = calls.size();
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(calls.size(), kAtOnce); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return first;
}

// What the engine keeps of a job. Shared, because calls use it without holding mu_.
struct JobEntry {
  ClusterRecord place;
  std::optional<bool> image_volumes GUARDED_BY(sending);  // whether its cluster has them
  const KubeClient* shared = nullptr;                     // of its cluster, as long as the engine
  std::unique_ptr<KubeClient> client;  // for this job only, so that it can be interrupted alone
  Mutex sending;                       // one Apply or Stop at a time
  std::unique_ptr<PodInformer> informer;
  Mutex relay_mu;
  std::unique_ptr<PodRelay> relay GUARDED_BY(relay_mu);
};

// Locks: mu_ guards the tables of clients and jobs, JobEntry::sending serializes Apply and Stop of
// a job, outbox_mu_ guards undelivered events. mu_ and outbox_mu_ are not held during requests.
class KubernetesEngine final : public PublishingEngine, public Executes {
 public:
  explicit KubernetesEngine(KubernetesEngineOptions options) : options_(std::move(options)) {
    objects_.program = options_.program;
    objects_.launcher_image = options_.launcher_image;
    if (const char* image = std::getenv("SHOAL_KUBE_LAUNCHER_IMAGE");
        objects_.launcher_image.empty() && image != nullptr)
      objects_.launcher_image = image;
    objects_.grace = options_.remove_grace;
    publisher_ = std::thread([this] { PublishAll(); });
  }
  ~KubernetesEngine() override;

  std::string name() const override { return "kubernetes"; }
  bool HasOwnQueue() const override { return true; }
  bool SharesJobDirectory() const override { return false; }
  Result<Capacity> GetCapacity() override;
  Status Apply(const DesiredJob& desired) override;
  Result<std::string> Describe(const DesiredJob& desired) override;
  Status Stop(const std::string& job_id, milliseconds grace) override;
  void Interrupt(const std::string& job_id) override;
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
  // How to reach a running pod.
  struct PodAddress {
    const KubeClient* client = nullptr;
    std::string path;
    std::string launcher;  // in the pod
  };
  // The cluster of another controller's job, by the record in the job's directory.
  ClusterRecord RecordedCluster(const std::string& job_id) const {
    return ReadClusterRecord(options_.job_dir ? options_.job_dir(job_id) : "");
  }
  Result<PodAddress> RunningPod(const std::string& job_id, const std::string& role, int index);
  Result<const KubeClient*> ClientFor(const std::string& context);
  Result<std::shared_ptr<JobEntry>> AddEntry(const std::string& job_id, const ClusterRecord& place);
  std::shared_ptr<JobEntry> Find(const std::string& job_id);
  // `there`: whether the cluster has objects of the job.
  Result<std::shared_ptr<JobEntry>> FindOrAdopt(const std::string& job_id,
                                                const ClusterRecord& place, bool* there);
  Status Send(JobEntry* entry, const DesiredJob& desired, const JobChanges& changes);
  Status MakeJobs(JobEntry* entry, const DesiredJob& desired, const JobChanges& changes);
  Result<JobView> MakeJob(JobEntry* entry, const DesiredJob& desired, const RoleJob& role,
                          const Owner& owner, bool suspended);
  Status RemoveAll(JobEntry* entry, const std::string& job_id, milliseconds grace);

  void PublishAll();
  void Queue(std::vector<TaskEvent> events);
  void AwaitPublished();

  const KubernetesEngineOptions options_;
  ObjectOptions objects_;
  Mutex mu_;
  std::map<std::string, std::unique_ptr<KubeClient>> clients_ GUARDED_BY(mu_);  // by context
  std::map<std::string, std::shared_ptr<JobEntry>> jobs_ GUARDED_BY(mu_);
  // Jobs whose Apply failed before it sent a request.
  std::set<std::string> nothing_made_ GUARDED_BY(mu_);

  Mutex outbox_mu_;
  CondVar outbox_changed_;
  std::vector<TaskEvent> outbox_ GUARDED_BY(outbox_mu_);
  bool publishing_ GUARDED_BY(outbox_mu_) = false;
  bool ending_ GUARDED_BY(outbox_mu_) = false;
  std::thread publisher_;
};

KubernetesEngine::~KubernetesEngine() {
  {
    const MutexLock lock(mu_);
    for (const auto& [context, client] : clients_) client->Shutdown();
    for (const auto& [id, entry] : jobs_) entry->client->Shutdown();
  }
  std::map<std::string, std::shared_ptr<JobEntry>> jobs;
  {
    const MutexLock lock(mu_);
    jobs.swap(jobs_);
  }
  jobs.clear();  // their threads end
  {
    const MutexLock lock(outbox_mu_);
    ending_ = true;
  }
  outbox_changed_.notify_all();
  publisher_.join();
}

// ---- Events ----

void KubernetesEngine::PublishAll() {
  MutexLock lock(outbox_mu_);
  for (;;) {
    outbox_changed_.wait(lock,
                         [this]() REQUIRES(outbox_mu_) { return ending_ || !outbox_.empty(); });
    if (ending_) return;
    const std::vector<TaskEvent> events = std::exchange(outbox_, {});
    publishing_ = true;
    lock.unlock();
    Publish(events);
    lock.lock();
    publishing_ = false;
    outbox_changed_.notify_all();
  }
}

void KubernetesEngine::Queue(std::vector<TaskEvent> events) {
  if (events.empty()) return;
  {
    const MutexLock lock(outbox_mu_);
    for (TaskEvent& event : events) outbox_.push_back(std::move(event));
  }
  outbox_changed_.notify_all();
}

void KubernetesEngine::AwaitPublished() {
  if (std::this_thread::get_id() == publisher_.get_id()) return;
  MutexLock lock(outbox_mu_);
  outbox_changed_.wait(
      lock, [this]() REQUIRES(outbox_mu_) { return ending_ || (outbox_.empty() && !publishing_); });
}

// ---- Clusters and jobs ----

Result<const KubeClient*> KubernetesEngine::ClientFor(const std::string& context) {
  const MutexLock lock(mu_);
  if (const auto known = clients_.find(context); known != clients_.end())
    return known->second.get();
  TRY_ASSIGN(ClusterAccess access, FindCluster(options_.place, context));
  TRY_ASSIGN(std::unique_ptr<KubeClient> client,
             KubeClient::Make(std::move(access), options_.clock));
  return clients_.emplace(context, std::move(client)).first->second.get();
}

std::shared_ptr<JobEntry> KubernetesEngine::Find(const std::string& job_id) {
  const MutexLock lock(mu_);
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<JobEntry>> KubernetesEngine::AddEntry(const std::string& job_id,
                                                             const ClusterRecord& place) {
  TRY_ASSIGN(const KubeClient* const client, ClientFor(place.context));
  const MutexLock lock(mu_);
  auto& entry = jobs_[job_id];
  if (entry != nullptr) return entry;
  entry = std::make_shared<JobEntry>();
  entry->place = place;
  if (entry->place.name_space.empty()) entry->place.name_space = client->name_space();
  entry->shared = client;
  entry->client = client->Share();
  entry->informer = std::make_unique<PodInformer>(
      PodInformer::Options{job_id, entry->place.name_space, entry->client.get(), options_.clock,
                           options_.restart},
      [this](std::vector<TaskEvent> events) { Queue(std::move(events)); });
  return entry;
}

Result<std::shared_ptr<JobEntry>> KubernetesEngine::FindOrAdopt(const std::string& job_id,
                                                                const ClusterRecord& place,
                                                                bool* there) {
  *there = true;
  if (auto entry = Find(job_id); entry != nullptr) return entry;
  TRY_ASSIGN(auto entry, AddEntry(job_id, place));
  const MutexLock sending(entry->sending);
  auto found = entry->informer->Adopt();
  if (found.ok() && *found) return entry;
  *there = false;
  if (found.ok()) return entry;
  const MutexLock lock(mu_);
  jobs_.erase(job_id);
  return found.status();
}

Result<Capacity> KubernetesEngine::GetCapacity() {
  TRY_ASSIGN(const KubeClient* const client, ClientFor(""));
  TRY_ASSIGN(const json::object nodes, client->Get("/api/v1/nodes"));
  return DecodeNodes(nodes, job::Kubernetes().gpu_resource);
}

Result<std::string> KubernetesEngine::Describe(const DesiredJob& desired) {
  TRY(CheckDesiredJob(desired));
  TRY(CheckObjects(objects_, desired));
  std::string name_space = desired.kubernetes.name_space;
  if (name_space.empty()) {
    // A plan can be made where no cluster is known.
    const auto access = FindCluster(options_.place, desired.kubernetes.context);
    name_space = access.ok() ? access->name_space : "default";
  }
  return DescribeObjects(objects_, desired, name_space);
}

// ---- Apply ----

Status KubernetesEngine::Apply(const DesiredJob& desired) {
  TRY(CheckDesiredJob(desired));
  TRY(CheckObjects(objects_, desired));
  bool there = false;
  const ClusterRecord place{desired.kubernetes.context, desired.kubernetes.name_space};
  const auto found = FindOrAdopt(desired.job_id, place, &there);
  {
    const MutexLock lock(mu_);
    if (!found.ok()) nothing_made_.insert(desired.job_id);
    if (found.ok()) nothing_made_.erase(desired.job_id);
  }
  TRY_ASSIGN(const auto entry, found);
  const MutexLock sending(entry->sending);
  if (entry->informer->stopping())
    return FailedPrecondition("job " + desired.job_id + " is being stopped");
  TRY(WriteClusterRecord(desired.job_dir, entry->place));
  const std::vector<JobView> jobs = entry->informer->jobs();
  if (!entry->image_volumes && BringsLauncher(objects_, desired))
    entry->image_volumes = MountsImages(*entry->client, entry->place.name_space);
  ObjectOptions objects = objects_;
  objects.image_volumes = entry->image_volumes.value_or(false);
  const JobChanges changes =
      PlanJobs(objects, desired, entry->place.name_space, jobs, entry->informer->KnownTasks());
  entry->informer->SetDesired(desired, changes);
  return Send(entry.get(), desired, changes);
}

Status KubernetesEngine::Send(JobEntry* entry, const DesiredJob& desired,
                              const JobChanges& changes) {
  const std::string jobs = "/apis/batch/v1/namespaces/" + entry->place.name_space + "/jobs/";
  for (const std::string& name : changes.remove) {
    TRY(entry->client->Delete(jobs + name, {{"propagationPolicy", "Background"}}));
  }
  for (const auto& [role, index] : changes.kept_longer) {
    LogWarning("job {}: {} {} keeps running: a role shrinks from its highest index", desired.job_id,
               role, index);
  }
  for (const kubernetes::Resize& resize : changes.resize) {
    json::object bases;
    for (const auto& [index, base] : resize.bases) bases[std::to_string(index)] = base;
    const json::object patch{
        {"metadata", {{"annotations", {{kBasesNote, ToText(bases)}}}}},
        {"spec", {{"parallelism", resize.count}, {"completions", resize.count}}}};
    TRY(entry->client->MergePatch(jobs + resize.name, patch).status());
  }
  if (!changes.make.empty()) TRY(MakeJobs(entry, desired, changes));
  entry->informer->Start();
  return Status::Ok();
}

Result<JobView> KubernetesEngine::MakeJob(JobEntry* entry, const DesiredJob& desired,
                                          const RoleJob& role, const Owner& owner, bool suspended) {
  TRY_ASSIGN(const json::object made,
             entry->client->Apply(
                 "/apis/batch/v1/namespaces/" + entry->place.name_space + "/jobs/" + role.name,
                 JobObject(objects_, desired, role, owner, suspended)));
  TRY_ASSIGN(JobView view, DecodeJob(made));
  entry->informer->AddJob(view);
  return view;
}

Status KubernetesEngine::MakeJobs(JobEntry* entry, const DesiredJob& desired,
                                  const JobChanges& changes) {
  const std::string& name_space = entry->place.name_space;
  const std::string core = "/api/v1/namespaces/" + name_space;
  const bool first = IsCoordinator(changes.make[0].role);
  Owner owner = entry->informer->owner();
  if (first) {
    TRY_ASSIGN(const JobView view, MakeJob(entry, desired, changes.make[0], Owner(), true));
    owner = {view.name, view.uid};
  }
  // Of a job that exists already Secret and Service exist too, and are the same.
  if (const auto secret = SecretObject(desired, owner); secret) {
    TRY(entry->client->Apply(core + "/secrets/" + BaseName(desired.job_id), *secret).status());
  }
  for (const json::object& policy : NetworkPolicyObjects(desired, owner)) {
    const std::string name(policy.at("metadata").at("name").as_string());
    TRY(entry->client
            ->Apply(
                "/apis/networking.k8s.io/v1/namespaces/" + name_space + "/networkpolicies/" + name,
                policy)
            .status());
  }
  // Ahead of the others: they find it once its node has told its address (ADR 98).
  if (first) {
    TRY(entry->client
            ->MergePatch("/apis/batch/v1/namespaces/" + name_space + "/jobs/" + owner.name,
                         {{"spec", {{"suspend", false}}}})
            .status());
  }
  std::vector<std::function<Status()>> calls{[&] {
    return entry->client
        ->Apply(core + "/services/" + BaseName(desired.job_id), ServiceObject(desired, owner))
        .status();
  }};
  for (size_t i = first ? 1 : 0; i < changes.make.size(); ++i) {
    calls.emplace_back(
        [&, i] { return MakeJob(entry, desired, changes.make[i], owner, false).status(); });
  }
  return CallAll(calls);
}

// ---- Stop and adopt ----

Status KubernetesEngine::Stop(const std::string& job_id, milliseconds grace) {
  TRY(CheckName("job id", job_id));
  {
    const MutexLock lock(mu_);
    if (nothing_made_.erase(job_id) > 0) return Status::Ok();
  }
  bool there = false;
  TRY_ASSIGN(const auto entry, FindOrAdopt(job_id, RecordedCluster(job_id), &there));
  Status removed;
  if (there) {
    const MutexLock sending(entry->sending);
    entry->informer->Stopping();
    entry->informer->Start();
    removed = RemoveAll(entry.get(), job_id, grace);
  }
  AwaitPublished();
  TRY(removed);
  {
    const MutexLock lock(mu_);
    jobs_.erase(job_id);
  }
  entry->informer->End();
  return Status::Ok();
}

void KubernetesEngine::Interrupt(const std::string& job_id) {
  const auto entry = Find(job_id);
  if (entry == nullptr) return;
  entry->client->Interrupt();
  entry->informer->Interrupt();
}

Status KubernetesEngine::RemoveAll(JobEntry* entry, const std::string& job_id, milliseconds grace) {
  const std::string& name_space = entry->place.name_space;
  const std::string of_job =
      "?labelSelector=" + net::PercentEncode(std::string(kJobLabel) + "=" + job_id);
  const std::string core = "/api/v1/namespaces/" + name_space;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::max(grace, milliseconds(1)));
  // Nothing makes pods any more; then these end, in their time.
  TRY(entry->client->Delete("/apis/batch/v1/namespaces/" + name_space + "/jobs" + of_job,
                            {{"propagationPolicy", "Background"}}));
  const auto remove = [&](const std::string& what, const json::object& options) {
    return [=] { return entry->client->Delete(core + what, options); };
  };
  TRY(CallAll({remove("/pods" + of_job, {{"gracePeriodSeconds", seconds.count()}}),
               remove("/services/" + BaseName(job_id), {}),
               remove("/secrets/" + BaseName(job_id), {})}));
  const Status gone = entry->informer->AwaitNoPods(grace + kEndPatience);
  if (gone.code() != Code::kDeadlineExceeded) return gone;
  // Pods on unreachable nodes: their end is never confirmed, and they may still hold volumes.
  LogWarning(
      "job {}: pods do not end though they were deleted: they are removed by force; a node "
      "that is cut off ends them when it is back",
      job_id);
  TRY(entry->client->Delete(core + "/pods" + of_job, {{"gracePeriodSeconds", 0}}));
  const Status forced = entry->informer->AwaitNoPods(kEndPatience);
  if (forced.code() != Code::kDeadlineExceeded) return forced;
  return DeadlineExceeded("pods of job " + job_id + " do not go; see `kubectl -n " + name_space +
                          " get pods -l " + kJobLabel + "=" + job_id + "`");
}

Result<std::vector<TaskStatus>> KubernetesEngine::Adopt(const std::string& job_id,
                                                        const std::string& job_dir) {
  TRY(CheckName("job id", job_id));
  bool there = false;
  TRY_ASSIGN(const auto entry, FindOrAdopt(job_id, ReadClusterRecord(job_dir), &there));
  if (there) {
    entry->informer->Start();
    return entry->informer->List();
  }
  const MutexLock lock(mu_);
  jobs_.erase(job_id);
  return std::vector<TaskStatus>();
}

// ---- Reaching tasks ----

Result<Endpoint> KubernetesEngine::Dial(const std::string& job_id) {
  const auto entry = Find(job_id);
  if (entry == nullptr) return NotFound("job " + job_id + " is not known to this engine");
  const auto running = [entry, job_id]() -> Result<std::string> {
    const auto pod = entry->informer->PodOf(kCoordinatorRole, 0);
    if (!pod || !pod->running)
      return Unavailable("the coordinator of job " + job_id + " does not run yet");
    const uint16_t port = CoordinatorAddress(job_id, "").port;
    return "/api/v1/namespaces/" + entry->place.name_space + "/pods/" + pod->name + ":" +
           std::to_string(port) + "/proxy";
  };
  TRY(running().status());
  const MutexLock lock(entry->relay_mu);
  if (entry->relay == nullptr) {
    std::weak_ptr<JobEntry> weak = entry;
    TRY_ASSIGN(entry->relay,
               PodRelay::Start(entry->shared, [weak, job_id]() -> Result<std::string> {
                 const auto alive = weak.lock();
                 if (alive == nullptr) return NotFound("the job is over");
                 const auto pod = alive->informer->PodOf(kCoordinatorRole, 0);
                 if (!pod || !pod->running) return Unavailable("the coordinator does not run");
                 return "/api/v1/namespaces/" + alive->place.name_space + "/pods/" + pod->name +
                        ":" + std::to_string(CoordinatorAddress(job_id, "").port) + "/proxy";
               }));
  }
  return entry->relay->endpoint();
}

Result<std::string> KubernetesEngine::TaskLog(const std::string& job_id, const std::string& role,
                                              int index, size_t limit) {
  const auto entry = Find(job_id);
  if (entry == nullptr) return std::string();
  return entry->informer->Log(role, index, limit);
}

Result<KubernetesEngine::PodAddress> KubernetesEngine::RunningPod(const std::string& job_id,
                                                                  const std::string& role,
                                                                  int index) {
  TRY(CheckName("job id", job_id));
  bool there = false;
  TRY_ASSIGN(const auto entry, FindOrAdopt(job_id, RecordedCluster(job_id), &there));
  const auto pod = entry->informer->PodOf(role, index);
  if (!there) {
    const MutexLock lock(mu_);
    jobs_.erase(job_id);
  }
  if (!pod || !pod->running) {
    return NotFound(role + " " + std::to_string(index) + " of job " + job_id +
                    " has no running pod in namespace " + entry->place.name_space);
  }
  const bool known = pod->program == kLauncherSource || pod->program == kLauncherMounted;
  return PodAddress{entry->shared,
                    "/api/v1/namespaces/" + entry->place.name_space + "/pods/" + pod->name,
                    known ? pod->program : kLauncherPath};
}

Result<std::unique_ptr<Execution>> KubernetesEngine::Exec(const std::string& job_id,
                                                          const std::string& role, int index,
                                                          const ExecSpec& spec) {
  if (spec.argv.empty() || spec.argv[0].empty())
    return InvalidArgument("got no command to run in the task");
  TRY_ASSIGN(const PodAddress pod, RunningPod(job_id, role, index));
  const std::vector<std::string> argv = EnterCommandArgv(pod.launcher, job_id, role, index, spec);
  return ExecInPod(pod.client, pod.path, argv, spec);
}

Result<UniqueFd> KubernetesEngine::DialTask(const std::string& job_id, const std::string& role,
                                            int index, uint16_t port) {
  TRY_ASSIGN(const PodAddress pod, RunningPod(job_id, role, index));
  if (port == 0)
    return Unavailable("no process listens on port 0");  // the server rejects it as malformed
  return DialPod(pod.client, pod.path, port);
}

}  // namespace

Result<std::unique_ptr<Engine>> MakeKubernetesEngine(KubernetesEngineOptions options) {
  return std::unique_ptr<Engine>(std::make_unique<KubernetesEngine>(std::move(options)));
}

}  // namespace shoal::engine
