#include "api/process/observability_services.h"

#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "api/forward/forwarder_config.h"
#include "api/forward/log_forwarder.h"
#include "api/webhooks/dispatcher.h"
#include "api/webhooks/webhook.h"
#include "controller/retention/log_keeper.h"

namespace shoal::api {
namespace {

class Services final : public ObservabilityServices {
 public:
  explicit Services(const ObservabilityOptions& options) : options_(options) {}
  // In the opposite order of the start.
  ~Services() override { observed_.reset(); }

  Status Begin() {
    TRY(StartWebhooks());
    TRY(StartLogKeeper());
    TRY(StartForwarders());
    ObserveJobs();
    return Status::Ok();
  }

  Observability handles() override {
    Observability all;
    all.webhooks = webhooks_.get();
    all.dispatcher = dispatcher_.get();
    all.log_keeper = log_keeper_.get();
    for (const auto& forwarder : forwarders_) all.forwarders.push_back(forwarder.get());
    all.ended_jobs = [this] {
      return std::map<job::JobState, uint64_t>{{job::JobState::kSucceeded, succeeded_.load()},
                                               {job::JobState::kFailed, failed_.load()},
                                               {job::JobState::kCancelled, cancelled_.load()}};
    };
    return all;
  }

 private:
  const ServerOptions& server() const { return *options_.server; }

  Status StartWebhooks() {
    auto addresses = net::AddressPolicy::Make(server().webhook_allow);
    if (!addresses.ok()) return addresses.status().With("--webhook-allow");
    webhooks_ =
        std::make_unique<Webhooks>(&options_.store->records(), options_.secrets, server().clock);
    WebhookDispatcherOptions options;
    options.store = options_.store;
    options.webhooks = webhooks_.get();
    options.clock = server().clock;
    options.send = [rule = std::move(*addresses), clock = server().clock](const Webhook& webhook,
                                                                          const JobChange& change) {
      return SendWebhook(webhook, change, clock->Wall(), rule);
    };
    TRY_ASSIGN(dispatcher_, WebhookDispatcher::Start(std::move(options)));
    return Status::Ok();
  }

  Status StartLogKeeper() {
    controller::LogKeeperOptions options;
    options.store = options_.store;
    options.home = options_.home;
    options.clock = server().clock;
    options.limits_of = [this](const std::string& team) -> Result<controller::LogLimits> {
      TRY_ASSIGN(const Policy policy, options_.policies->Of(team));
      controller::LogLimits limits;
      if (policy.log_days) limits.keep = std::chrono::hours(24) * *policy.log_days;
      limits.bytes = policy.log_bytes;
      return limits;
    };
    TRY_ASSIGN(log_keeper_, controller::LogKeeper::Start(std::move(options)));
    return Status::Ok();
  }

  Status StartForwarders() {
    if (server().forward_file.empty()) return Status::Ok();
    TRY_ASSIGN(const auto configs, ReadForwarders(server().forward_file));
    for (const ForwarderConfig& config : configs) {
      LogForwarderOptions options;
      options.config = config;
      TRY_ASSIGN(options.sink, MakeLogSink(config));
      options.store = options_.store;
      options.home = options_.home;
      options.clock = server().clock;
      TRY_ASSIGN(auto forwarder, LogForwarder::Start(std::move(options)));
      forwarders_.push_back(std::move(forwarder));
    }
    return Status::Ok();
  }

  // Called on the supervisor's thread.
  void ObserveJobs() {
    controller::JobsObserver observer;
    observer.on_log = [this](const std::string& id, const controller::LogKey&, int64_t,
                             std::string_view) {
      for (const auto& forwarder : forwarders_) forwarder->Grew(id);
    };
    observer.on_end = [this](const std::string&, const controller::JobRecord& record) {
      if (job::IsFinal(record.state)) ++EndedJobs(record.state);
    };
    observed_ = options_.supervisor->Observe(std::move(observer));
  }

  std::atomic<uint64_t>& EndedJobs(job::JobState state) {
    if (state == job::JobState::kSucceeded) return succeeded_;
    return state == job::JobState::kFailed ? failed_ : cancelled_;
  }

  const ObservabilityOptions options_;
  std::unique_ptr<Webhooks> webhooks_;
  std::unique_ptr<WebhookDispatcher> dispatcher_;
  std::unique_ptr<controller::LogKeeper> log_keeper_;
  std::vector<std::unique_ptr<LogForwarder>> forwarders_;
  std::atomic<uint64_t> succeeded_{0}, failed_{0}, cancelled_{0};  // jobs
  std::unique_ptr<controller::Supervisor::Observation> observed_;
};

}  // namespace

Result<std::unique_ptr<ObservabilityServices>> ObservabilityServices::Start(
    const ObservabilityOptions& options) {
  auto services = std::make_unique<Services>(options);
  TRY(services->Begin());
  return std::unique_ptr<ObservabilityServices>(std::move(services));
}

}  // namespace shoal::api
