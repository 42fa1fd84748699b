#include "api/process/active_server.h"

#include <atomic>
#include <utility>

#include "api/catalog/catalog_services.h"
#include "api/models/model_registrar.h"
#include "api/models/team_models.h"
#include "api/oidc/sign_in.h"
#include "api/operator/operator.h"
#include "api/people/people.h"
#include "api/people/policy.h"
#include "api/process/observability_services.h"
#include "api/queues/queues_file.h"
#include "api/server/followers.h"
#include "api/server/prepare_job.h"
#include "api/server/readiness.h"
#include "api/server/rest_server.h"
#include "api/server/submit_document.h"
#include "api/server/uploads.h"
#include "api/sql/sql_sessions.h"
#include "base/id.h"
#include "base/log.h"
#include "base/private_files.h"
#include "controller/engines/engine_registry.h"
#include "controller/files/state_home.h"
#include "controller/groups/job_groups.h"
#include "controller/schedules/job_schedules.h"
#include "controller/supervisor/supervisor.h"
#include "host/files/blob_cache.h"

namespace shoal::api {
namespace {

constexpr size_t kRunBytes = 8;

class LeadingServer final : public ActiveServer {
 public:
  explicit LeadingServer(const ActiveServerOptions& options)
      : options_(options),
        server_(*options.server),
        home_(server_.state),
        models_{{server_.state / kModelsFolder, server_.clock}, nullptr} {}
  // In the opposite order of the start.
  ~LeadingServer() override {
    operator_.reset();
    http_.reset();
    rest_.server.reset();
    rest_.sql.reset();
    schedules_.reset();
    groups_.reset();
    models_.registrar.reset();
    observability_.reset();
    followers_.reset();
    if (catalog_) catalog_->Unfollow();
    supervisor_.reset();
  }

  Status Begin() {
    TRY(MakePeople());
    TRY(MakeSignIn());
    TRY(MakeSecrets());
    TRY(MakeEngines());
    TRY_ASSIGN(catalog_,
               CatalogServices::Start({&server_, options_.store, secrets_.get(), people_.get()}));
    TRY(StartSupervisor());
    catalog_->Follow(supervisor_.get());
    TRY(StartGroups());
    TRY(StartFollowers());
    TRY_ASSIGN(observability_,
               ObservabilityServices::Start({&server_, options_.store, supervisor_.get(),
                                             secrets_.get(), policies_.get(), home_}));
    TRY_ASSIGN(models_.registrar, ModelRegistrar::Start({options_.store, engines_.get(),
                                                         &models_.teams, server_.clock, home_}));
    return StartOperator();
  }

  Status Listen(uint16_t port) override {
    TRY(StartRest());
    net::HttpServerOptions http = HttpOptionsOf(server_, port);
    http.handler = rest_.server->handler();
    http.max_body = rest_.server->max_body();
    TRY_ASSIGN(http_, net::HttpServer::Start(std::move(http)));
    started_http_ = http_.get();
    return Status::Ok();
  }
  void Shutdown(Duration limit) override {
    stopping_ = true;
    if (followers_) followers_->FinishAll();
    if (http_) http_->Shutdown(limit);
  }
  void ReloadQueues(std::function<void(const Status&)> done) override {
    api::ReloadQueues(server_.queues_file, &supervisor_->queues(),
                      [this, done = std::move(done)](const Status& status) {
                        WriteAudit(status);
                        done(status);
                      });
  }
  const net::HttpServer& http() const override { return *http_; }
  const std::optional<std::string>& first_token() const override { return first_token_; }
  const std::vector<std::string>& attached() const override { return attached_; }

 private:
  struct Models {
    TeamModels teams;
    std::unique_ptr<ModelRegistrar> registrar;
  };
  struct Rest {
    std::unique_ptr<SqlSessions> sql;
    std::unique_ptr<RestServer> server;
  };

  Status MakePeople() {
    people_ = std::make_unique<People>(&options_.store->records(), server_.clock);
    policies_ = std::make_unique<Policies>(&options_.store->records(), server_.clock);
    TRY_ASSIGN(first_token_, people_->MakeFirstAdministrator());
    if (!first_token_) return Status::Ok();
    return WriteFileAtomically(server_.state / kFirstTokenFile, *first_token_ + "\n", 0600);
  }

  Status MakeSignIn() {
    if (server_.oidc_file.empty()) return Status::Ok();
    TRY_ASSIGN(OidcConfig config, ReadOidcConfig(server_.oidc_file));
    sign_in_ = std::make_unique<SignIn>(std::move(config), people_.get(), server_.clock);
    return Status::Ok();
  }

  Status MakeSecrets() {
    controller::SealingKeySource key;
    key.file = server_.secrets_key.empty() ? home_.secrets_key() : server_.secrets_key;
    key.command = server_.secrets_key_command;
    secrets_ = std::make_unique<controller::SecretVault>(&options_.store->records(), server_.clock,
                                                         std::move(key));
    return secrets_->Prepare();
  }

  Status MakeEngines() {
    const engine::FindJobDir job_dir = [home = home_](const std::string& id) {
      return home.job_dir(id).string();
    };
    if (server_.engines_file.empty()) {
      engines_ = std::make_unique<controller::EngineRegistry>(job_dir);
    } else {
      TRY_ASSIGN(auto instances, controller::ReadEngineInstances(server_.engines_file));
      engines_ = std::make_unique<controller::EngineRegistry>(std::move(instances), job_dir);
    }
    if (!engines_->KindOf(server_.default_engine).empty()) return Status::Ok();
    return engines_->Find(server_.default_engine).status();
  }

  Status StartSupervisor() {
    controller::SupervisorOptions options;
    options.store = options_.store;
    options.home = home_;
    options.engines = engines_.get();
    options.clock = server_.clock;
    options.program = server_.program;
    options.self = options_.self;
    options.secrets = catalog_->gates();
    options.task_user = [this](const std::string& team,
                               const std::string& engine) -> Result<std::optional<UserIds>> {
      TRY_ASSIGN(const Policy policy, policies_->Of(team));
      return TaskUserOf(policy, engines_->KindOf(engine));
    };
    options.lead = options_.lead;
    if (!server_.queues_file.empty()) {
      TRY_ASSIGN(options.queues, ReadQueues(server_.queues_file));
    }
    TRY_ASSIGN(supervisor_, controller::Supervisor::Start(std::move(options)));
    TRY_ASSIGN(attached_, supervisor_->AttachAll());
    return Status::Ok();
  }

  // What a user may no longer submit is not made for it later.
  Status CheckSubmitter(const controller::StoredSubmission& source) const {
    const Result<User> user = people_->GetUser(source.user);
    if (user.status().code() == Code::kNotFound)
      return PermissionDenied("the user " + source.user + ", who submitted it, has been removed");
    TRY(user.status());
    const auto role = user->teams.find(source.team);
    const bool may =
        user->administrator || (role != user->teams.end() && role->second >= Role::kMember);
    if (user->disabled || !may)
      return PermissionDenied("the user " + source.user + ", who submitted it, " +
                              (user->disabled
                                   ? "is disabled"
                                   : "may no longer submit jobs of the team " + source.team));
    return Status::Ok();
  }

  // Members of groups are made as if they were submitted.
  Status StartGroups() {
    preparation_.engines = engines_.get();
    preparation_.policies = policies_.get();
    preparation_.home = home_;
    preparation_.clock = server_.clock;
    AddCatalog(&preparation_);
    controller::JobGroupsOptions options;
    options.store = options_.store;
    options.supervisor = supervisor_.get();
    options.clock = server_.clock;
    options.home = home_;
    options.make = [this](const controller::StoredSubmission& source,
                          size_t member) -> Result<controller::MadeJob> {
      TRY(CheckSubmitter(source));
      TRY_ASSIGN(ParsedJob parsed, PrepareJob(preparation_, source, member));
      controller::JobValidation validation = ValidationOf(preparation_, parsed);
      TRY(catalog_->gates()->Keep(parsed.job, source.team, source.user));
      return controller::MadeJob{std::move(parsed.job), parsed.engine, parsed.directory,
                                 std::move(validation)};
    };
    TRY_ASSIGN(groups_, controller::JobGroups::Start(std::move(options)));
    return StartSchedules();
  }

  void AddCatalog(Backend* backend) {
    backend->people = people_.get();
    backend->tables = {catalog_->catalog(), catalog_->lineage(), catalog_->gates(), &models_.teams,
                       server_.gate_address};
  }

  Status StartSchedules() {
    preparation_.groups = groups_.get();
    preparation_.supervisor = supervisor_.get();
    preparation_.store = options_.store;
    preparation_.clock = server_.clock;
    controller::JobSchedulesOptions options;
    options.store = options_.store;
    options.clock = server_.clock;
    options.start = [this](const controller::ScheduleRecord& schedule, const std::string& id,
                           const std::vector<std::string>& after) -> Status {
      TRY(CheckSubmitter(schedule.source));
      controller::StoredSubmission source = schedule.source;
      std::vector<job::Dependency> ends;
      for (const std::string& one : after) ends.push_back({one, job::DependencyWhen::kEnded});
      SetAfter(ends, &source);
      TRY_ASSIGN(PlannedDocument document, PlanDocument(preparation_, source));
      document.id = id;
      return SubmitDocument(preparation_, &document, {},
                            {{controller::kScheduleLabel, schedule.name}});
    };
    options.stop = [this](const std::string& id, const std::string& reason) {
      if (controller::ReadGroup(options_.store, id).ok()) {
        (void)groups_->Stop(id, reason, false);
      } else {
        supervisor_->Drain(id, reason, [](const Status&) {});
      }
    };
    TRY_ASSIGN(schedules_, controller::JobSchedules::Start(std::move(options)));
    return Status::Ok();
  }

  Status StartFollowers() {
    FollowersOptions following;
    following.store = options_.store;
    following.supervisor = supervisor_.get();
    following.home = home_;
    following.still_valid = [this](const Principal& principal) {
      return people_->IsValid(principal);
    };
    TRY_ASSIGN(followers_, Followers::Start(std::move(following)));
    uploads_ = std::make_unique<Uploads>(server_.state / "uploads", host::CacheLimit());
    uploads_->CleanUp();
    readiness_ =
        std::make_unique<Readiness>(&options_.store->records(), server_.state, server_.clock);
    return Status::Ok();
  }

  Status StartOperator() {
    const std::string& engine = server_.operator_engine;
    if (engine.empty()) return Status::Ok();
    preparation_.records = &options_.store->records();
    preparation_.audit = &options_.store->audit();
    preparation_.readiness = readiness_.get();
    const controller::EngineInstance* const cluster = engines_->FindInstance(engine);
    if (cluster == nullptr || cluster->kind != "kubernetes")
      return InvalidArgument("--operator-engine: got " + engine +
                             ", expected an engine instance of the kind kubernetes");
    TRY_ASSIGN(operator_, Operator::Start({&preparation_, *cluster, server_.operator_teams}));
    return Status::Ok();
  }

  // The change has no request, and so no user.
  void WriteAudit(const Status& reloaded) {
    controller::AuditEntry entry;
    entry.time = server_.clock->Wall();
    entry.action = "reloadQueues";
    entry.object = server_.queues_file.string();
    entry.detail = {{"by", "SIGHUP"}, {"error", reloaded.message()}};
    if (reloaded.ok()) entry.detail.erase("error");
    const Status written = options_.store->audit().Append({&entry, 1});
    if (!written.ok()) LogError("the audit log cannot be written: {}", written.message());
  }

  Status StartRest() {
    Backend backend;
    backend.store = options_.store;
    backend.records = &options_.store->records();
    backend.audit = &options_.store->audit();
    backend.supervisor = supervisor_.get();
    backend.engines = engines_.get();
    AddCatalog(&backend);
    backend.policies = policies_.get();
    backend.secrets = secrets_.get();
    backend.groups = groups_.get();
    backend.schedules = schedules_.get();
    backend.followers = followers_.get();
    backend.uploads = uploads_.get();
    backend.readiness = readiness_.get();
    backend.observability = observability_->handles();
    backend.sign_in = sign_in_.get();
    backend.clock = server_.clock;
    backend.home = home_;
    backend.default_engine = server_.default_engine;
    backend.queues_file = server_.queues_file;
    backend.start.version = server_.version;
    backend.start.run = RandomHex(kRunBytes);
    backend.start.epoch = options_.lead.epoch;
    backend.stopping = [this] { return stopping_.load(); };
    backend.leading = [lead = options_.lead] { return lead.held(); };
    backend.start.http_stats = [this] {
      const net::HttpServer* const http = started_http_.load();
      return http == nullptr ? net::HttpServerStats{} : http->stats();
    };
    TRY_ASSIGN(rest_.sql, SqlSessions::Start({backend, server_.program}));
    backend.sql = rest_.sql.get();
    RestServerOptions rest;
    rest.later = [this](Duration delay, std::function<void()> fn) {
      followers_->Later(delay, std::move(fn));
    };
    rest_.server = std::make_unique<RestServer>(std::move(backend), std::move(rest));
    return Status::Ok();
  }

  const ActiveServerOptions options_;
  const ServerOptions& server_;
  const controller::StateHome home_;
  Models models_;
  std::unique_ptr<People> people_;
  std::unique_ptr<Policies> policies_;
  std::unique_ptr<SignIn> sign_in_;
  std::unique_ptr<controller::SecretVault> secrets_;
  std::optional<std::string> first_token_;
  std::unique_ptr<controller::EngineRegistry> engines_;
  std::unique_ptr<CatalogServices> catalog_;
  std::unique_ptr<controller::Supervisor> supervisor_;
  std::vector<std::string> attached_;
  Backend preparation_;  // of jobs that are made later, and of the operator
  std::unique_ptr<controller::JobGroups> groups_;
  std::unique_ptr<controller::JobSchedules> schedules_;
  std::unique_ptr<Followers> followers_;
  std::unique_ptr<Uploads> uploads_;
  std::unique_ptr<Readiness> readiness_;
  std::unique_ptr<ObservabilityServices> observability_;
  Rest rest_;
  std::unique_ptr<net::HttpServer> http_;
  std::unique_ptr<Operator> operator_;
  std::atomic<bool> stopping_{false};
  std::atomic<const net::HttpServer*> started_http_{nullptr};
};

}  // namespace

Result<std::unique_ptr<ActiveServer>> ActiveServer::Start(const ActiveServerOptions& options) {
  auto server = std::make_unique<LeadingServer>(options);
  TRY(server->Begin());
  return std::unique_ptr<ActiveServer>(std::move(server));
}

net::HttpServerOptions HttpOptionsOf(const ServerOptions& options, uint16_t port) {
  net::HttpServerOptions http;
  http.address = options.address;
  http.port = port;
  http.tls = options.tls;
  http.allowed_origins = options.allowed_origins;
  return http;
}

}  // namespace shoal::api
