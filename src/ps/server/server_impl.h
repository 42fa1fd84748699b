// The parts of a Server. For server.cc and server_leave.cc alone.
#pragma once

#include <memory>

#include "ps/client/auto_balancer.h"
#include "ps/replication/replica_host.h"
#include "ps/server/server_core.h"
#include "ps/server/tcp_server.h"

namespace shoal::ps {

struct Server::Impl {
  std::shared_ptr<ServerCore> core;   // that listens, and serves its own index at first
  std::shared_ptr<ReplicaHost> host;  // null without copies
  std::unique_ptr<TcpServer> tcp;     // null once it has stopped
  std::unique_ptr<AutoBalancer> balancer;

  // Of all servers that this one serves, its own first.
  std::vector<std::shared_ptr<ServerCore>> Cores() const;
  // At once, as a crash would. Idempotent.
  void Stop();
};

// The options with which a server becomes a client of its own job.
ClientOptions ClientOptionsOf(const ServerOptions& options);

}  // namespace shoal::ps
