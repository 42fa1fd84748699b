// The server of `shoal server`: store, supervisor, people and the REST interface of one state
// directory, in one process with one port.
//
//     TRY_ASSIGN(auto server, Server::Start({.state = "/var/lib/shoal", …}));
//     …  server->url()  …  server->Shutdown(std::chrono::seconds(10));
//
// Jobs outlive it: their coordinators go on, and the next server of the directory attaches them.
// Of several servers of one store (PostgreSQL) one leads; the others answer with its address, and
// one of them takes over when it does not renew its lease (ADR 270).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/http/http_server.h"

namespace shoal::api {

// What a server is among those of its store. Plain value.
struct ServerRole {
  bool leads = false;
  int64_t epoch = 0;    // of its lease; 0: its store is not shared
  std::string leader;   // URL of the server that leads; empty: none is known
  size_t attached = 0;  // jobs that it took over when it began to lead
  std::string why;      // why it does not lead any more; empty: it never did
};

struct ServerOptions {
  std::filesystem::path state;         // made if it is not there, mode 0700
  std::string store;                   // URL; empty: sqlite in `state`
  std::string address = "127.0.0.1";   // numeric
  uint16_t port = 7117;                // 0: the kernel chooses
  net::TlsServerOptions tls;           // without TLS `address` must be the loopback
  std::filesystem::path engines_file;  // empty: one engine of each kind
  std::string default_engine = "local";
  std::string public_url;  // at which clients reach this server; empty: the one it listens on
  std::vector<std::string> allowed_origins;
  std::string program;  // absolute path of shoal
  std::string version;
  std::filesystem::path
      queues_file;  // the policy of the queues (docs/queue.md); empty: first in, first out
  std::filesystem::path secrets_key;       // file of the key of secrets; empty: in `state`
  std::string secrets_key_command;         // prints it instead (controller/secrets/secret_vault.h)
  std::vector<std::string> webhook_allow;  // networks that webhooks may lead to (AddressPolicy)
  std::filesystem::path forward_file;      // receivers of logs (docs/logs.md); empty: none
  std::string gate_address = "127.0.0.1";  // numeric; where tasks reach the gates of their tables
  std::filesystem::path oidc_file;         // the provider that signs people in; empty: none
  // Runs the ShoalJobs of the cluster of this engine instance (api/operator); empty: none.
  std::string operator_engine;
  std::vector<std::string> operator_teams;  // NAMESPACE=TEAM; none: *=default
  const Clock* clock = RealClock::Get();
  // Both optional, on any thread, not before Start has returned and not after the destructor: the
  // role has changed; this server cannot do what its role demands and should end, so that another
  // one leads.
  std::function<void(const ServerRole&)> on_change = {};
  std::function<void(const Status&)> on_failed = {};
};

// Where the first start stores the administrator's token, mode 0600.
inline constexpr const char* kFirstTokenFile = "administrator.token";

class Server {
 public:
  // Returns when requests are answered, as leader or standby. InvalidArgument for options that are
  // not allowed together; FailedPrecondition if another server uses the directory or the address,
  // or the directory is not the one that the store's servers share; errors of the store.
  static Result<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // Without Shutdown it closes all connections at once.
  virtual ~Server() = default;

  virtual std::string url() const = 0;
  // Of the certificate; empty without TLS.
  virtual std::string fingerprint() const = 0;
  // The administrator's token, if this server made it.
  virtual std::optional<std::string> first_token() const = 0;
  virtual ServerRole role() const = 0;
  // Reads the queues' file again and puts it in force, if this server leads; a standby only checks
  // the file, which it reads when it begins to lead. Blocks until it is done; for one thread.
  // FailedPrecondition without a file, or if jobs would be stranded.
  virtual Status ReloadQueues() = 0;
  // Answers /readyz with 503, lets requests end for at most `limit` and closes streams.
  virtual void Shutdown(Duration limit) = 0;
};

}  // namespace shoal::api
