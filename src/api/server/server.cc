#include "api/server/server.h"

#include <atomic>
#include <utility>

#include "api/people/people.h"
#include "api/people/policy.h"
#include "api/server/followers.h"
#include "api/server/rest_server.h"
#include "api/server/state_lock.h"
#include "api/server/uploads.h"
#include "base/log.h"
#include "base/open_file_limit.h"
#include "base/private_files.h"
#include "controller/engines/engine_registry.h"
#include "controller/files/state_home.h"
#include "controller/store/open_store.h"
#include "controller/store/process_identity.h"
#include "controller/supervisor/supervisor.h"
#include "host/files/blob_cache.h"
#include "net/address.h"

namespace shoal::api {
namespace {

Status CheckOptions(const ServerOptions& options) {
  if (!options.tls.enabled() && !net::IsLoopback(options.address))
    return InvalidArgument(
        "without TLS the server listens on the loopback only, since tokens and data would cross "
        "the network in the clear; got the address " +
        options.address + ", so add --tls-self-signed, or --tls-cert and --tls-key");
  return Status::Ok();
}

class ShoalServer final : public Server {
 public:
  explicit ShoalServer(const ServerOptions& options) : options_(options), home_(options.state) {}
  // In the opposite order of Begin.
  ~ShoalServer() override {
    http_.reset();
    rest_.reset();
    followers_.reset();
    supervisor_.reset();
  }

  Status Begin() {
    TRY(CheckOptions(options_));
    RaiseOpenFiles();  // jobs and connections need several each; tasks get the limit from before
    TRY(MakeDirectories(options_.state, 0700));
    TRY(CheckOwnDirectory(options_.state));
    TRY_ASSIGN(lock_, LockState(options_.state));
    TRY_ASSIGN(self_, controller::CurrentProcess());
    TRY(OpenStore());
    TRY(MakePeople());
    TRY(MakeSecrets());
    TRY(MakeEngines());
    TRY(StartSupervisor());
    return StartRest();
  }

  std::string url() const override { return http_->url(); }
  std::string fingerprint() const override { return http_->fingerprint(); }
  const std::optional<std::string>& first_token() const override { return first_token_; }
  const std::vector<std::string>& attached() const override { return attached_; }
  void Shutdown(Duration limit) override {
    stopping_ = true;
    followers_->FinishAll();
    http_->Shutdown(limit);
  }

 private:
  Status OpenStore() {
    const std::string url =
        options_.store.empty() ? "sqlite:" + home_.database().string() : options_.store;
    TRY_ASSIGN(store_, controller::OpenStore(url));
    return Status::Ok();
  }

  Status MakePeople() {
    people_ = std::make_unique<People>(&store_->records(), options_.clock);
    policies_ = std::make_unique<Policies>(&store_->records(), options_.clock);
    TRY_ASSIGN(first_token_, people_->MakeFirstAdministrator());
    if (!first_token_) return Status::Ok();
    return WriteFileAtomically(options_.state / kFirstTokenFile, *first_token_ + "\n", 0600);
  }

  Status MakeSecrets() {
    controller::SealingKeySource key;
    key.file = options_.secrets_key.empty() ? home_.secrets_key() : options_.secrets_key;
    key.command = options_.secrets_key_command;
    secrets_ = std::make_unique<controller::SecretVault>(&store_->records(), options_.clock,
                                                         std::move(key));
    return secrets_->Prepare();
  }

  Status MakeEngines() {
    const engine::FindJobDir job_dir = [home = home_](const std::string& id) {
      return home.job_dir(id).string();
    };
    if (options_.engines_file.empty()) {
      engines_ = std::make_unique<controller::EngineRegistry>(job_dir);
    } else {
      TRY_ASSIGN(auto instances, controller::ReadEngineInstances(options_.engines_file));
      engines_ = std::make_unique<controller::EngineRegistry>(std::move(instances), job_dir);
    }
    if (!engines_->KindOf(options_.default_engine).empty()) return Status::Ok();
    return engines_->Find(options_.default_engine).status();
  }

  Status StartSupervisor() {
    controller::SupervisorOptions options;
    options.store = store_.get();
    options.home = home_;
    options.engines = engines_.get();
    options.clock = options_.clock;
    options.program = options_.program;
    options.self = self_;
    options.secrets = secrets_.get();
    TRY_ASSIGN(supervisor_, controller::Supervisor::Start(std::move(options)));
    TRY_ASSIGN(attached_, supervisor_->AttachAll());
    return Status::Ok();
  }

  Status StartRest() {
    FollowersOptions following;
    following.store = store_.get();
    following.supervisor = supervisor_.get();
    following.home = home_;
    following.still_valid = [this](const Principal& principal) {
      return people_->IsValid(principal);
    };
    TRY_ASSIGN(followers_, Followers::Start(std::move(following)));
    uploads_ = std::make_unique<Uploads>(options_.state / "uploads", host::CacheLimit());
    uploads_->CleanUp();
    Backend backend;
    backend.store = store_.get();
    backend.records = &store_->records();
    backend.audit = &store_->audit();
    backend.supervisor = supervisor_.get();
    backend.engines = engines_.get();
    backend.people = people_.get();
    backend.policies = policies_.get();
    backend.secrets = secrets_.get();
    backend.followers = followers_.get();
    backend.uploads = uploads_.get();
    backend.clock = options_.clock;
    backend.home = home_;
    backend.default_engine = options_.default_engine;
    backend.version = options_.version;
    backend.stopping = [this] { return stopping_.load(); };
    backend.http_stats = [this] {
      const net::HttpServer* const http = started_http_.load();
      return http == nullptr ? net::HttpServerStats{} : http->stats();
    };
    RestServerOptions rest;
    rest.later = [this](Duration delay, std::function<void()> fn) {
      followers_->Later(delay, std::move(fn));
    };
    rest_ = std::make_unique<RestServer>(std::move(backend), std::move(rest));
    net::HttpServerOptions http;
    http.address = options_.address;
    http.port = options_.port;
    http.tls = options_.tls;
    http.handler = rest_->handler();
    http.max_body = rest_->max_body();
    http.allowed_origins = options_.allowed_origins;
    TRY_ASSIGN(http_, net::HttpServer::Start(std::move(http)));
    started_http_ = http_.get();
    return Status::Ok();
  }

  const ServerOptions options_;
  const controller::StateHome home_;
  UniqueFd lock_;
  controller::ProcessIdentity self_;
  std::unique_ptr<controller::Store> store_;
  std::unique_ptr<People> people_;
  std::unique_ptr<Policies> policies_;
  std::unique_ptr<controller::SecretVault> secrets_;
  std::optional<std::string> first_token_;
  std::unique_ptr<controller::EngineRegistry> engines_;
  std::unique_ptr<controller::Supervisor> supervisor_;
  std::vector<std::string> attached_;
  std::unique_ptr<Followers> followers_;
  std::unique_ptr<Uploads> uploads_;
  std::unique_ptr<RestServer> rest_;
  std::unique_ptr<net::HttpServer> http_;
  std::atomic<bool> stopping_{false};
  std::atomic<const net::HttpServer*> started_http_{nullptr};
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  auto server = std::make_unique<ShoalServer>(options);
  TRY(server->Begin());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace shoal::api
