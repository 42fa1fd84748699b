// Where the events of a follower go: a stream of server-sent events, or one subscription of a
// WebSocket that carries several.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "net/http/server_exchange.h"

namespace shoal::api {

// Thread-safe.
class Sink {
 public:
  // A follower stops writing above this many queued bytes and goes on in OnDrained.
  static constexpr size_t kHighWater = size_t{512} << 10;

  virtual ~Sink() = default;
  // False once the peer has gone. `id`: the position after this event; may be empty.
  virtual bool Write(std::string_view event, std::string_view id, const json::value& data) = 0;
  // Keeps the connection alive.
  virtual bool Ping() = 0;
  virtual size_t queued_bytes() const = 0;
  // The last event has been written.
  virtual void Finish() = 0;
  // The peer's token is revoked or its rights have changed: ends the connection, so that it has to
  // sign in again.
  virtual void Refuse() = 0;
  bool full() const { return queued_bytes() >= kHighWater; }
};

// Of server-sent events.
std::shared_ptr<Sink> MakeSseSink(std::shared_ptr<net::HttpReplyStream> stream);
// Of the subscription with this number: {"sub": 1, "event": …, "id": …, "data": …}. `on_finish` is
// called before the peer is told that the subscription has ended.
std::shared_ptr<Sink> MakeSocketSink(std::shared_ptr<net::HttpWebSocket> socket, int64_t number,
                                     std::function<void()> on_finish);
// Ends a connection whose user has lost rights that it was opened with.
void RefuseSocket(net::HttpWebSocket* socket);

}  // namespace shoal::api
