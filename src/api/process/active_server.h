// The parts of a server that exist while it leads: people, engines, supervisor, followers, REST
// interface and the HTTP server. A server without others leads from its start to its end. Used by
// server.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/process/server.h"
#include "base/clock.h"
#include "base/status.h"
#include "controller/store/job_record.h"
#include "controller/store/lease.h"
#include "controller/store/store.h"
#include "net/http/http_server.h"

namespace shoal::api {

// What it is made of. All pointers must outlive it.
struct ActiveServerOptions {
  const ServerOptions* server = nullptr;
  controller::Store* store = nullptr;
  controller::ProcessIdentity self;
  controller::Lead lead;
};

// Starts in two steps, since the port may be in use by the standby's HTTP server until the jobs are
// taken over. Not thread-safe, but for what its parts answer.
class ActiveServer {
 public:
  // Makes the first administrator if there is none, and takes over the jobs. Blocks on the store.
  static Result<std::unique_ptr<ActiveServer>> Start(const ActiveServerOptions& options);
  // Closes all connections at once. Jobs go on without a controller.
  virtual ~ActiveServer() = default;

  // Answers requests from now on.
  virtual Status Listen(uint16_t port) = 0;
  // Lets requests end for at most `limit` and closes streams.
  virtual void Shutdown(Duration limit) = 0;

  // Puts the policy of the queues' file in force. `done` is called once, on any thread; errors are
  // those of ReadQueues and QueueManager::Replace.
  virtual void ReloadQueues(std::function<void(const Status&)> done) = 0;

  // Only after Listen.
  virtual const net::HttpServer& http() const = 0;
  virtual const std::optional<std::string>& first_token() const = 0;
  virtual const std::vector<std::string>& attached() const = 0;
};

// The settings of the HTTP server, without its handlers.
net::HttpServerOptions HttpOptionsOf(const ServerOptions& options, uint16_t port);

}  // namespace shoal::api
