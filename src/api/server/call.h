// One request on its way through the server: checked, with the user behind it and what it touches;
// and what handlers work with.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/people/people.h"
#include "api/people/policy.h"
#include "api/people/principal.h"
#include "api/rest/problem.h"
#include "api/rest/route.h"
#include "api/rest/router.h"
#include "base/clock.h"
#include "base/json.h"
#include "controller/engines/engine_registry.h"
#include "controller/files/state_home.h"
#include "controller/secrets/secret_vault.h"
#include "controller/store/records.h"
#include "controller/store/store.h"
#include "controller/supervisor/supervisor.h"
#include "net/http/http_server.h"
#include "net/http/server_exchange.h"

namespace shoal::controller {
class JobGroups;
class JobSchedules;
class LogKeeper;
}  // namespace shoal::controller

namespace shoal::api {

class Catalog;
class Followers;
class Gates;
class Lineage;
class LogForwarder;
class Readiness;
class SignIn;
class SqlSessions;
class TeamModels;
class Uploads;
class WebhookDispatcher;
class Webhooks;

// What tells of jobs outside of the server, and keeps their logs.
struct Observability {
  Webhooks* webhooks = nullptr;
  WebhookDispatcher* dispatcher = nullptr;
  controller::LogKeeper* log_keeper = nullptr;
  std::vector<const LogForwarder*> forwarders = {};
  // Jobs that have ended since this server's start, by final state; may be empty.
  std::function<std::map<job::JobState, uint64_t>()> ended_jobs = {};
};

// One start of the server as the leader.
struct ServerStart {
  std::string run;           // a random word
  int64_t epoch = 0;         // of its lease; 0: its store is not shared
  std::string version = {};  // of the program
  std::function<net::HttpServerStats()> http_stats = {};  // may be empty
};

// Tables, and who may read what of them (api/catalog); models that were trained on them.
struct CatalogParts {
  Catalog* catalog = nullptr;
  Lineage* lineage = nullptr;
  Gates* gates = nullptr;
  TeamModels* models = nullptr;
  std::string gate_address = {};  // where tasks reach gates
};

// What the handlers use. All pointers outlive the server; all objects are thread-safe.
struct Backend {
  controller::Store* store = nullptr;
  controller::Records* records = nullptr;
  controller::Audit* audit = nullptr;
  controller::Supervisor* supervisor = nullptr;
  controller::EngineRegistry* engines = nullptr;
  People* people = nullptr;
  Policies* policies = nullptr;
  controller::SecretVault* secrets = nullptr;
  CatalogParts tables;
  controller::JobGroups* groups = nullptr;
  controller::JobSchedules* schedules = nullptr;
  Followers* followers = nullptr;
  Uploads* uploads = nullptr;
  Readiness* readiness = nullptr;
  Observability observability;
  SignIn* sign_in = nullptr;  // null: people sign in with tokens only
  const Clock* clock = nullptr;
  controller::StateHome home{std::filesystem::path()};
  std::string default_engine;
  std::filesystem::path queues_file;  // of the policy of the queues; may be empty
  // Runs a task on a thread that may wait; false if too many wait.
  std::function<bool(std::function<void()>)> defer;
  std::function<bool()> stopping;
  // False while another server may lead: then nothing is answered but /healthz and /readyz.
  std::function<bool()> leading;
  ServerStart start;
  SqlSessions* sql = nullptr;
};

// Held by shared_ptr; used by one thread at a time.
struct Call {
  std::shared_ptr<net::HttpExchange> exchange;
  const Route* route = nullptr;
  Arguments arguments;
  Principal principal;
  std::string team;                          // that owns what the request touches
  std::optional<controller::JobRecord> job;  // of {id}
  std::string target;                        // for the audit log: a job, a user, …
  json::object details;                      // likewise
  // Answers, after the audit log has the change. Set by the server; called once.
  std::function<void(net::HttpServerReply)> answer;

  const net::HttpServerRequest& request() const { return exchange->request(); }
};

using CallPtr = std::shared_ptr<Call>;
// Answers through Call::answer, or takes over the exchange. Runs on a thread that may wait.
using Handler = void (*)(const Backend&, const CallPtr&);

net::HttpServerReply JsonReply(int status, const json::value& value);

}  // namespace shoal::api
