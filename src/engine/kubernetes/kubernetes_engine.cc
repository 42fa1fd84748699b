// The calls of engine.h send objects (objects.h, plan_jobs.h) and wait for nothing but the server's
// answer. A thread for each job watches its pods (job_follower.h); one more tells the watchers.
#include "engine/kubernetes/kubernetes_engine.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "engine/exec/remote_exec.h"
#include "engine/kubernetes/image_volumes.h"
#include "engine/kubernetes/kube_client.h"
#include "engine/kubernetes/kube_exec.h"
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

// Where a job is, beside the job's own directory: found again after a crash.
struct ClusterRecord {
  std::string context;
  std::string name_space;
};

std::filesystem::path PlaceFile(const std::string& job_dir) {
  return EngineDir(job_dir) / "kubernetes.json";
}

ClusterRecord ReadPlace(const std::string& job_dir) {
  ClusterRecord place;
  if (job_dir.empty()) return place;
  constexpr size_t kMaxFile = 4096;
  const auto text = ReadFile(PlaceFile(job_dir), kMaxFile);
  const auto object = ParseJsonObject(text.ok() ? *text : "{}");
  if (!object.ok()) return place;
  place.context = GetStringOr(*object, "context", "");
  place.name_space = GetStringOr(*object, "namespace", "");
  return place;
}

Status WritePlace(const std::string& job_dir, const ClusterRecord& place) {
  if (job_dir.empty()) return Status::Ok();
  TRY(MakeDirectories(EngineDir(job_dir), 0700));
  const json::object object{{"context", place.context}, {"namespace", place.name_space}};
  return WriteFileAtomically(PlaceFile(job_dir), ToText(object) + "\n", 0600);
}

// Several at a time, in any order; the first error, after which no other is begun.
Status CallAll(const std::vector<std::function<Status()>>& calls) {
  constexpr size_t kAtOnce = 8;
  std::atomic<size_t> next{0};
  std::mutex mu;
  Status first;
  const auto work = [&] {
    for (size_t i = next++; i < calls.size(); i = next++) {
      const Status status = calls[i]();
      if (status.ok()) continue;
      std::lock_guard lock(mu);
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

struct JobEntry {
  ClusterRecord place;
  std::optional<bool> image_volumes;   // guarded by sending: whether its cluster has them
  const KubeClient* shared = nullptr;  // of its cluster, as long as the engine
  std::unique_ptr<KubeClient> client;  // its own: interrupted alone
  std::mutex sending;                  // one Apply or Stop at a time
  std::unique_ptr<PodInformer> follower;
  std::mutex relay_mu;
  std::unique_ptr<PodRelay> relay;  // guarded by relay_mu
};

class KubernetesEngine final : public PublishingEngine {
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
  Result<std::unique_ptr<Execution>> Exec(const std::string& job_id, const std::string& role,
                                          int index, const ExecSpec& spec) override;
  Result<UniqueFd> DialTask(const std::string& job_id, const std::string& role, int index,
                            uint16_t port) override;

 private:
  struct Reached {
    const KubeClient* client = nullptr;
    std::string path;
    std::string launcher;  // in the pod
  };
  // Where a job of another process of ours is, as the job's directory says.
  ClusterRecord RecordedPlace(const std::string& job_id) const {
    return ReadPlace(options_.job_dir ? options_.job_dir(job_id) : "");
  }
  Result<Reached> RunningPod(const std::string& job_id, const std::string& role, int index);
  Result<const KubeClient*> ClientFor(const std::string& context);
  Result<std::shared_ptr<JobEntry>> Hold(const std::string& job_id, const ClusterRecord& place);
  std::shared_ptr<JobEntry> Find(const std::string& job_id);
  // `there`: whether the cluster has any of it.
  Result<std::shared_ptr<JobEntry>> FindOrAdopt(const std::string& job_id,
                                                const ClusterRecord& place, bool* there);
  Status Send(JobEntry* held, const DesiredJob& desired, const JobChanges& changes);
  Status MakeJobs(JobEntry* held, const DesiredJob& desired, const JobChanges& changes);
  Result<JobView> MakeJob(JobEntry* held, const DesiredJob& desired, const RoleJob& role,
                          const Owner& owner, bool suspended);
  Status RemoveAll(JobEntry* held, const std::string& job_id, milliseconds grace);

  void PublishAll();
  void Queue(std::vector<TaskEvent> events);
  void AwaitPublished();

  const KubernetesEngineOptions options_;
  ObjectOptions objects_;
  std::mutex mu_;
  std::map<std::string, std::unique_ptr<KubeClient>> clients_;  // guarded by mu_, by context
  std::map<std::string, std::shared_ptr<JobEntry>> jobs_;       // guarded by mu_
  // Jobs whose Apply failed before it had asked for anything to be made.
  std::set<std::string> nothing_made_;  // guarded by mu_

  std::mutex outbox_mu_;
  std::condition_variable outbox_changed_;
  std::vector<TaskEvent> outbox_;  // guarded by outbox_mu_
  bool publishing_ = false;        // guarded by outbox_mu_
  bool ending_ = false;            // guarded by outbox_mu_
  std::thread publisher_;
};

KubernetesEngine::~KubernetesEngine() {
  {
    std::lock_guard lock(mu_);
    for (const auto& [context, client] : clients_) client->GiveUp();
    for (const auto& [id, held] : jobs_) held->client->GiveUp();
  }
  std::map<std::string, std::shared_ptr<JobEntry>> jobs;
  {
    std::lock_guard lock(mu_);
    jobs.swap(jobs_);
  }
  jobs.clear();  // their threads end
  {
    std::lock_guard lock(outbox_mu_);
    ending_ = true;
  }
  outbox_changed_.notify_all();
  publisher_.join();
}

// ---- Events ----

void KubernetesEngine::PublishAll() {
  std::unique_lock lock(outbox_mu_);
  for (;;) {
    outbox_changed_.wait(lock, [this] { return ending_ || !outbox_.empty(); });
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
    std::lock_guard lock(outbox_mu_);
    for (TaskEvent& event : events) outbox_.push_back(std::move(event));
  }
  outbox_changed_.notify_all();
}

void KubernetesEngine::AwaitPublished() {
  if (std::this_thread::get_id() == publisher_.get_id()) return;
  std::unique_lock lock(outbox_mu_);
  outbox_changed_.wait(lock, [this] { return ending_ || (outbox_.empty() && !publishing_); });
}

// ---- Clusters and jobs ----

Result<const KubeClient*> KubernetesEngine::ClientFor(const std::string& context) {
  std::lock_guard lock(mu_);
  if (const auto known = clients_.find(context); known != clients_.end())
    return known->second.get();
  TRY_ASSIGN(ClusterAccess access, FindCluster(options_.place, context));
  TRY_ASSIGN(std::unique_ptr<KubeClient> client,
             KubeClient::Make(std::move(access), options_.clock));
  return clients_.emplace(context, std::move(client)).first->second.get();
}

std::shared_ptr<JobEntry> KubernetesEngine::Find(const std::string& job_id) {
  std::lock_guard lock(mu_);
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<JobEntry>> KubernetesEngine::Hold(const std::string& job_id,
                                                         const ClusterRecord& place) {
  TRY_ASSIGN(const KubeClient* const client, ClientFor(place.context));
  std::lock_guard lock(mu_);
  auto& held = jobs_[job_id];
  if (held != nullptr) return held;
  held = std::make_shared<JobEntry>();
  held->place = place;
  if (held->place.name_space.empty()) held->place.name_space = client->name_space();
  held->shared = client;
  held->client = client->Share();
  held->follower = std::make_unique<PodInformer>(
      PodInformer::Options{job_id, held->place.name_space, held->client.get(), options_.clock,
                           options_.restart},
      [this](std::vector<TaskEvent> events) { Queue(std::move(events)); });
  return held;
}

Result<std::shared_ptr<JobEntry>> KubernetesEngine::FindOrAdopt(const std::string& job_id,
                                                                const ClusterRecord& place,
                                                                bool* there) {
  *there = true;
  if (auto held = Find(job_id); held != nullptr) return held;
  TRY_ASSIGN(auto held, Hold(job_id, place));
  std::lock_guard sending(held->sending);
  auto found = held->follower->Adopt();
  if (found.ok() && *found) return held;
  *there = false;
  if (found.ok()) return held;
  std::lock_guard lock(mu_);
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
    std::lock_guard lock(mu_);
    if (!found.ok()) nothing_made_.insert(desired.job_id);
    if (found.ok()) nothing_made_.erase(desired.job_id);
  }
  TRY_ASSIGN(const auto held, found);
  std::lock_guard sending(held->sending);
  if (held->follower->stopping())
    return FailedPrecondition("job " + desired.job_id + " is being stopped");
  TRY(WritePlace(desired.job_dir, held->place));
  const std::vector<JobView> jobs = held->follower->jobs();
  if (!held->image_volumes && BringsLauncher(objects_, desired))
    held->image_volumes = MountsImages(*held->client, held->place.name_space);
  ObjectOptions objects = objects_;
  objects.image_volumes = held->image_volumes.value_or(false);
  const JobChanges changes =
      PlanJobs(objects, desired, held->place.name_space, jobs, held->follower->Known());
  held->follower->Want(desired, changes);
  return Send(held.get(), desired, changes);
}

Status KubernetesEngine::Send(JobEntry* held, const DesiredJob& desired,
                              const JobChanges& changes) {
  const std::string jobs = "/apis/batch/v1/namespaces/" + held->place.name_space + "/jobs/";
  for (const std::string& name : changes.remove) {
    TRY(held->client->Delete(jobs + name, {{"propagationPolicy", "Background"}}));
  }
  for (const auto& [role, index] : changes.kept_longer) {
    LogWarning("job {}: {} {} stays: the pods of a role are given up from its end", desired.job_id,
               role, index);
  }
  for (const kubernetes::Resize& resize : changes.resize) {
    json::object bases;
    for (const auto& [index, base] : resize.bases) bases[std::to_string(index)] = base;
    const json::object patch{
        {"metadata", {{"annotations", {{kBasesNote, ToText(bases)}}}}},
        {"spec", {{"parallelism", resize.count}, {"completions", resize.count}}}};
    TRY(held->client->MergePatch(jobs + resize.name, patch).status());
  }
  if (!changes.make.empty()) TRY(MakeJobs(held, desired, changes));
  held->follower->Start();
  return Status::Ok();
}

Result<JobView> KubernetesEngine::MakeJob(JobEntry* held, const DesiredJob& desired,
                                          const RoleJob& role, const Owner& owner, bool suspended) {
  TRY_ASSIGN(const json::object made,
             held->client->Apply(
                 "/apis/batch/v1/namespaces/" + held->place.name_space + "/jobs/" + role.name,
                 JobObject(objects_, desired, role, owner, suspended)));
  TRY_ASSIGN(JobView view, DecodeJob(made));
  held->follower->Made(view);
  return view;
}

Status KubernetesEngine::MakeJobs(JobEntry* held, const DesiredJob& desired,
                                  const JobChanges& changes) {
  const std::string& name_space = held->place.name_space;
  const std::string core = "/api/v1/namespaces/" + name_space;
  const bool first = changes.make[0].role == "coordinator";
  Owner owner = held->follower->owner();
  if (first) {
    TRY_ASSIGN(const JobView view, MakeJob(held, desired, changes.make[0], Owner(), true));
    owner = {view.name, view.uid};
  }
  // Of a job that exists already Secret and Service exist too, and are the same.
  if (const auto secret = SecretObject(desired, owner); secret) {
    TRY(held->client->Apply(core + "/secrets/" + BaseName(desired.job_id), *secret).status());
  }
  // Ahead of the others: they find it once its node has told its address (ADR 98).
  if (first) {
    TRY(held->client
            ->MergePatch("/apis/batch/v1/namespaces/" + name_space + "/jobs/" + owner.name,
                         {{"spec", {{"suspend", false}}}})
            .status());
  }
  std::vector<std::function<Status()>> calls{[&] {
    return held->client
        ->Apply(core + "/services/" + BaseName(desired.job_id), ServiceObject(desired, owner))
        .status();
  }};
  for (size_t i = first ? 1 : 0; i < changes.make.size(); ++i) {
    calls.emplace_back(
        [&, i] { return MakeJob(held, desired, changes.make[i], owner, false).status(); });
  }
  return CallAll(calls);
}

// ---- Stop and adopt ----

Status KubernetesEngine::Stop(const std::string& job_id, milliseconds grace) {
  TRY(CheckName("job id", job_id));
  {
    std::lock_guard lock(mu_);
    if (nothing_made_.erase(job_id) > 0) return Status::Ok();
  }
  bool there = false;
  TRY_ASSIGN(const auto held, FindOrAdopt(job_id, RecordedPlace(job_id), &there));
  Status removed;
  if (there) {
    std::lock_guard sending(held->sending);
    held->follower->Stopping();
    held->follower->Start();
    removed = RemoveAll(held.get(), job_id, grace);
  }
  AwaitPublished();
  TRY(removed);
  {
    std::lock_guard lock(mu_);
    jobs_.erase(job_id);
  }
  held->follower->End();
  return Status::Ok();
}

void KubernetesEngine::Interrupt(const std::string& job_id) {
  const auto held = Find(job_id);
  if (held == nullptr) return;
  held->client->Interrupt();
  held->follower->Interrupt();
}

Status KubernetesEngine::RemoveAll(JobEntry* held, const std::string& job_id, milliseconds grace) {
  const std::string& name_space = held->place.name_space;
  const std::string of_job =
      "?labelSelector=" + net::PercentEncode(std::string(kJobLabel) + "=" + job_id);
  const std::string core = "/api/v1/namespaces/" + name_space;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::max(grace, milliseconds(1)));
  // Nothing makes pods any more; then these end, in their time.
  TRY(held->client->Delete("/apis/batch/v1/namespaces/" + name_space + "/jobs" + of_job,
                           {{"propagationPolicy", "Background"}}));
  const auto remove = [&](const std::string& what, const json::object& options) {
    return [=] { return held->client->Delete(core + what, options); };
  };
  TRY(CallAll({remove("/pods" + of_job, {{"gracePeriodSeconds", seconds.count()}}),
               remove("/services/" + BaseName(job_id), {}),
               remove("/secrets/" + BaseName(job_id), {})}));
  const Status gone = held->follower->AwaitNoPods(grace + kEndPatience);
  if (gone.code() != Code::kDeadlineExceeded) return gone;
  // On nodes that are silent: nobody confirms their end, and who holds their volumes is not known.
  LogWarning(
      "job {}: pods do not end though they were deleted: they are removed by force; a node "
      "that is cut off ends them when it is back",
      job_id);
  TRY(held->client->Delete(core + "/pods" + of_job, {{"gracePeriodSeconds", 0}}));
  const Status forced = held->follower->AwaitNoPods(kEndPatience);
  if (forced.code() != Code::kDeadlineExceeded) return forced;
  return DeadlineExceeded("pods of job " + job_id + " do not go; see `kubectl -n " + name_space +
                          " get pods -l " + kJobLabel + "=" + job_id + "`");
}

Result<std::vector<TaskStatus>> KubernetesEngine::Adopt(const std::string& job_id,
                                                        const std::string& job_dir) {
  TRY(CheckName("job id", job_id));
  bool there = false;
  TRY_ASSIGN(const auto held, FindOrAdopt(job_id, ReadPlace(job_dir), &there));
  if (there) {
    held->follower->Start();
    return held->follower->List();
  }
  std::lock_guard lock(mu_);
  jobs_.erase(job_id);
  return std::vector<TaskStatus>();
}

// ---- Reaching tasks ----

Result<Endpoint> KubernetesEngine::Dial(const std::string& job_id) {
  const auto held = Find(job_id);
  if (held == nullptr) return NotFound("job " + job_id + " is not known to this engine");
  const auto running = [held, job_id]() -> Result<std::string> {
    const auto pod = held->follower->PodOf("coordinator", 0);
    if (!pod || !pod->running)
      return Unavailable("the coordinator of job " + job_id + " does not run yet");
    const uint16_t port = CoordinatorAddress(job_id, "").port;
    return "/api/v1/namespaces/" + held->place.name_space + "/pods/" + pod->name + ":" +
           std::to_string(port) + "/proxy";
  };
  TRY(running().status());
  std::lock_guard lock(held->relay_mu);
  if (held->relay == nullptr) {
    std::weak_ptr<JobEntry> weak = held;
    TRY_ASSIGN(held->relay, PodRelay::Start(held->shared, [weak, job_id]() -> Result<std::string> {
                 const auto alive = weak.lock();
                 if (alive == nullptr) return NotFound("the job is over");
                 const auto pod = alive->follower->PodOf("coordinator", 0);
                 if (!pod || !pod->running) return Unavailable("the coordinator does not run");
                 return "/api/v1/namespaces/" + alive->place.name_space + "/pods/" + pod->name +
                        ":" + std::to_string(CoordinatorAddress(job_id, "").port) + "/proxy";
               }));
  }
  return held->relay->endpoint();
}

Result<std::string> KubernetesEngine::TaskLog(const std::string& job_id, const std::string& role,
                                              int index, size_t limit) {
  const auto held = Find(job_id);
  if (held == nullptr) return std::string();
  return held->follower->Log(role, index, limit);
}

Result<KubernetesEngine::Reached> KubernetesEngine::RunningPod(const std::string& job_id,
                                                               const std::string& role, int index) {
  TRY(CheckName("job id", job_id));
  bool there = false;
  TRY_ASSIGN(const auto held, FindOrAdopt(job_id, RecordedPlace(job_id), &there));
  const auto pod = held->follower->PodOf(role, index);
  if (!there) {
    std::lock_guard lock(mu_);
    jobs_.erase(job_id);
  }
  if (!pod || !pod->running) {
    return NotFound(role + " " + std::to_string(index) + " of job " + job_id +
                    " has no running pod in namespace " + held->place.name_space);
  }
  const bool known = pod->program == kLauncherSource || pod->program == kLauncherMounted;
  return Reached{held->shared,
                 "/api/v1/namespaces/" + held->place.name_space + "/pods/" + pod->name,
                 known ? pod->program : kLauncherPath};
}

Result<std::unique_ptr<Execution>> KubernetesEngine::Exec(const std::string& job_id,
                                                          const std::string& role, int index,
                                                          const ExecSpec& spec) {
  if (spec.argv.empty() || spec.argv[0].empty())
    return InvalidArgument("got no command to run in the task");
  TRY_ASSIGN(const Reached pod, RunningPod(job_id, role, index));
  const std::vector<std::string> argv = EnterCommandArgv(pod.launcher, job_id, role, index, spec);
  return ExecInPod(pod.client, pod.path, argv, spec);
}

Result<UniqueFd> KubernetesEngine::DialTask(const std::string& job_id, const std::string& role,
                                            int index, uint16_t port) {
  TRY_ASSIGN(const Reached pod, RunningPod(job_id, role, index));
  if (port == 0) return Unavailable("nobody listens at port 0");  // the server calls it nonsense
  return DialPod(pod.client, pod.path, port);
}

}  // namespace

Result<std::unique_ptr<Engine>> MakeKubernetesEngine(KubernetesEngineOptions options) {
  return std::unique_ptr<Engine>(std::make_unique<KubernetesEngine>(std::move(options)));
}

}  // namespace shoal::engine
