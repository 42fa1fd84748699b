#include "rendezvous/coordinator/coordinator_listener.h"

#include <utility>

#include "rendezvous/protocol/coordinator_connection.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

Result<std::unique_ptr<net::WebSocketServer>> ListenForConnections(
    net::Loop* loop, const CoordinatorOptions& options, int tasks,
    const std::function<void(std::unique_ptr<net::WebSocket>)>& on_connection) {
  uint16_t port = options.port;
  if (port == 0) {
    const auto earlier = ReadCoordinatorFile(options.job_dir);
    if (earlier.ok()) port = earlier->port;
  }
  const auto listen = [&](uint16_t at) {
    net::ServerOptions server;
    server.host = options.host;
    server.port = at;
    server.path = kPath;
    server.connections = static_cast<size_t>(tasks) * 2 + 256;
    server.limits.message_bytes = kMaxMessageUp;
    return net::WebSocketServer::Listen(loop, std::move(server), on_connection);
  };
  auto server = listen(port);
  if (!server.ok() && port != 0 && options.port == 0) return listen(0);
  return server;
}

}  // namespace shoal::rendezvous
