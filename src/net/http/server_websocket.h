// The WebSocket side of an HttpServer: a connection after its upgrade. Boost.Beast is behind it.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "net/http/server_connection.h"
#include "net/http/server_exchange.h"
#include "net/http/server_transport.h"

namespace shoal::net {

// What handlers get, and its connection's side of it, which belongs to the I/O thread.
class ServerWebSocket : public HttpWebSocket {
 public:
  static std::shared_ptr<ServerWebSocket> Make(std::shared_ptr<ServerConnection> connection);

  // Answers the upgrade. `early`: what came after the request.
  virtual void Start(std::shared_ptr<ServerTransport> transport, const HttpServerRequest& request,
                     const std::string& protocol, std::string early) = 0;
  // Sends pings, and closes the connection of a peer that does not answer.
  virtual void CheckDeadlines(TimePoint now) = 0;
  // The connection is closed.
  virtual void EndFromServer() = 0;
};

// What the handler holds: closes the socket when it is dropped.
std::shared_ptr<HttpWebSocket> MakeWebSocketHandle(std::shared_ptr<ServerWebSocket> socket);

}  // namespace shoal::net
