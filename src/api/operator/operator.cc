#include "api/operator/operator.h"

#include <list>
#include <thread>
#include <utility>

#include "api/operator/due_queue.h"
#include "api/operator/event_follower.h"
#include "api/operator/kube_objects.h"
#include "api/operator/operator_lease.h"
#include "api/operator/server_jobs.h"
#include "base/log.h"
#include "base/mutex.h"
#include "controller/supervisor/supervisor.h"

namespace shoal::api {
namespace {

using engine::kubernetes::KubeClient;

// Events of a job come in bursts: one status for all of a burst.
constexpr Duration kTaskDelay = std::chrono::milliseconds(300);
constexpr Duration kNoLeasePause = std::chrono::seconds(1);

// A namespace that is watched, or all of them, with connections of its own.
struct Scope {
  std::string name_space;
  std::unique_ptr<KubeClient> client;
  std::unique_ptr<KubeFeed> feed;
  std::thread thread;
};

class ClusterOperator final : public Operator {
 public:
  explicit ClusterOperator(const OperatorOptions& options)
      : options_(options), clock_(options.backend->clock) {}
  ~ClusterOperator() override {
    observed_.reset();
    stored_.reset();
    {
      const MutexLock lock(mu_);
      ending_ = true;
    }
    changed_.notify_all();
    queue_.Close();
    for (Scope& scope : scopes_) scope.feed->End();
    if (client_) client_->Shutdown();
    if (lease_client_) lease_client_->Shutdown();
    for (Scope& scope : scopes_) scope.thread.join();
    if (worker_.joinable()) worker_.join();
    if (electing_.joinable()) electing_.join();
  }

  Status Begin() {
    TRY_ASSIGN(const OperatorTeams teams, ParseOperatorTeams(options_.team_words));
    TRY(MakeOperatorUser(teams, options_.backend->people));
    TRY(Connect());
    jobs_ = MakeServerJobs(options_.backend, teams, options_.cluster.name);
    objects_ = MakeKubeObjects(client_.get(), clock_);
    reconciler_ = std::make_unique<Reconciler>(ReconcilerOptions{
        objects_.get(), jobs_.get(), clock_, options_.backend->store->store_id()});
    lease_ = std::make_unique<OperatorLease>(options_.backend->store->store_id());
    TRY(ObserveJobs());
    AddScopes(teams);
    worker_ = std::thread([this] { Work(); });
    electing_ = std::thread([this] { Elect(); });
    return Status::Ok();
  }

 private:
  Status Connect() {
    engine::kubernetes::KubeConfigSources place = engine::kubernetes::DefaultKubeConfigSources();
    if (!options_.cluster.kubeconfig.empty()) place.kubeconfig = options_.cluster.kubeconfig;
    TRY_ASSIGN(engine::kubernetes::ClusterAccess access,
               engine::kubernetes::FindCluster(place, options_.cluster.context));
    TRY_ASSIGN(client_, KubeClient::Make(std::move(access), clock_));
    lease_client_ = client_->Share();
    return Status::Ok();
  }

  // ---- Watches ----

  void AddScopes(const OperatorTeams& teams) {
    if (!teams.others.empty()) {
      scopes_.emplace_back();
    } else {
      for (const auto& [name_space, team] : teams.by_namespace)
        scopes_.emplace_back().name_space = name_space;
    }
    for (Scope& scope : scopes_) {
      scope.client = client_->Share();
      scope.feed = MakeKubeFeed(scope.client.get(), scope.name_space);
      scope.thread = std::thread([this, &scope] { Follow(&scope); });
    }
  }

  void Follow(Scope* scope) {
    ObjectSink sink;
    sink.on_list = [&](const ShoalJobList& list) {
      for (const ResourceKey& key : reconciler_->Replace(scope->name_space, list.items)) Look(key);
    };
    sink.on_change = [&](const ShoalJob& object) {
      reconciler_->Put(object);
      Look(object.key);
    };
    sink.on_delete = [&](const ShoalJob& object) {
      reconciler_->Remove(object);
      Look(object.key);
    };
    sink.on_trouble = [](const Status& why) {
      LogWarning(
          "the ShoalJobs of the cluster cannot be watched: {}{}; trying again", why.message(),
          why.code() == Code::kNotFound ? " (is the resource installed? docs/operator.md)" : "");
    };
    FollowObjects(scope->feed.get(), sink);
  }

  void Look(const ResourceKey& key) { queue_.Add(key, clock_->Now()); }

  // ---- Events of jobs ----

  // States and tasks are looked at when they are stored, and the end of a job also when its
  // resources are removed.
  Status ObserveJobs() {
    const auto changed = [this](const std::string& id) {
      if (const auto key = reconciler_->KeyOf(id)) queue_.Add(*key, clock_->Now() + kTaskDelay);
    };
    TRY_ASSIGN(stored_, EventFollower::Start(options_.backend->store, changed));
    controller::JobsObserver observer;
    observer.on_end = [changed](const std::string& id, const controller::JobRecord&) {
      changed(id);
    };
    observed_ = options_.backend->supervisor->Observe(std::move(observer));
    return Status::Ok();
  }

  // ---- The worker ----

  void Work() {
    while (const std::optional<ResourceKey> key = queue_.Wait(*clock_)) {
      if (!acting()) {
        queue_.Add(*key, clock_->Now() + kNoLeasePause);
        continue;
      }
      if (const auto delay = reconciler_->Reconcile(*key)) queue_.Add(*key, clock_->Now() + *delay);
    }
  }

  bool acting() {
    const MutexLock lock(mu_);
    return lease_->held(clock_->Now());
  }

  // ---- The lease ----

  std::string LeasePath() const {
    return "/apis/coordination.k8s.io/v1/namespaces/" + client_->name_space() + "/leases/" +
           kOperatorLease;
  }

  void Elect() {
    for (std::string other;;) {
      const Status tried = Attempt();
      MutexLock lock(mu_);
      if (!tried.ok() && !ending_)
        LogWarning("the operator's lease cannot be renewed: {}", tried.message());
      if (tried.ok() && lease_->other() != other) {
        other = lease_->other();
        if (!other.empty())
          LogWarning("the operator of another server ({}) acts in this cluster; this one waits",
                     other);
      }
      const bool ended = changed_.wait_for(lock, tried.ok() ? kLeaseRenewal : kNoLeasePause,
                                           [this]() REQUIRES(mu_) { return ending_; });
      if (ended) break;
    }
    GiveUp();
  }

  Result<LeaseView> ReadLease() {
    Result<json::object> object = lease_client_->Get(LeasePath());
    if (object.status().code() == Code::kNotFound) {
      // Without a holder, which is set in a way that only one succeeds.
      object = lease_client_->Apply(LeasePath(), {{"apiVersion", "coordination.k8s.io/v1"},
                                                  {"kind", "Lease"},
                                                  {"metadata", {{"name", kOperatorLease}}}});
    }
    TRY(object.status());
    return DecodeLease(*object);
  }

  Status Attempt() {
    TRY_ASSIGN(const LeaseView lease, ReadLease());
    const TimePoint asked = clock_->Now();
    std::optional<json::object> change;
    {
      const MutexLock lock(mu_);
      change = lease_->Attempt(lease, asked, clock_->Wall());
    }
    if (!change) return Status::Ok();
    const Status written = lease_client_->MergePatch(LeasePath(), *change).status();
    if (written.code() == Code::kAlreadyExists) return Status::Ok();  // another one was faster
    TRY(written);
    const MutexLock lock(mu_);
    lease_->Acquired(asked);
    return Status::Ok();
  }

  void GiveUp() {
    if (!acting()) return;
    const Result<LeaseView> lease = ReadLease();
    if (!lease.ok() || lease->holder != options_.backend->store->store_id()) return;
    (void)lease_client_->MergePatch(LeasePath(), lease_->Release(*lease, clock_->Wall()));
  }

  const OperatorOptions options_;
  const Clock* const clock_;
  std::unique_ptr<KubeClient> client_;
  std::unique_ptr<KubeClient> lease_client_;
  std::unique_ptr<OperatorJobs> jobs_;
  std::unique_ptr<ShoalJobApi> objects_;
  std::unique_ptr<Reconciler> reconciler_;
  DueQueue<ResourceKey> queue_;
  std::list<Scope> scopes_;
  Mutex mu_;
  CondVar changed_;
  std::unique_ptr<OperatorLease> lease_;  // its methods: under mu_
  bool ending_ GUARDED_BY(mu_) = false;
  std::thread worker_;
  std::thread electing_;
  std::unique_ptr<EventFollower> stored_;
  std::unique_ptr<controller::Supervisor::Observation> observed_;
};

}  // namespace

Result<std::unique_ptr<Operator>> Operator::Start(const OperatorOptions& options) {
  auto made = std::make_unique<ClusterOperator>(options);
  TRY(made->Begin());
  return std::unique_ptr<Operator>(std::move(made));
}

}  // namespace shoal::api
