// Plain TCP: a stream of bytes for protocols of others (rabit's tracker), which prove nothing and
// frame for themselves.
//
// Close-on-exec, TCP_NODELAY. Everything belongs to the loop's thread. Boost.Asio is behind it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "net/event_loop.h"

namespace shoal::net {

// One open connection. Destroying it closes the socket at once; what was queued may be lost.
class TcpStream {
 public:
  // The bytes are valid during the call; how they are cut means nothing.
  using OnBytes = std::function<void(std::string_view bytes)>;
  // OK when the peer has ended its side; otherwise why. Once, last; never from within a method.
  using OnClose = std::function<void(const Status&)>;

  virtual ~TcpStream() = default;

  // Starts reading; call once. Both callbacks may destroy the stream.
  virtual void Start(OnBytes on_bytes, OnClose on_close) = 0;
  // Queues; never blocks. Nothing after Finish.
  virtual void Send(std::string bytes) = 0;
  virtual size_t queued_bytes() const = 0;
  // Ends our side after what is queued; on_close follows when the peer has ended its own, at the
  // latest after 2 s.
  virtual void Finish() = 0;
  // The peer's numeric address, without the port.
  virtual const std::string& peer_host() const = 0;
};

struct TcpServerOptions {
  std::string host = "127.0.0.1";  // numeric
  uint16_t port = 0;               // 0: the kernel chooses
  size_t connections = 1024;       // open at once; more are closed at once
};

// Accepts until destroyed; the connections that it gave away live on.
class TcpServer {
 public:
  using OnAccept = std::function<void(std::unique_ptr<TcpStream>)>;
  // Over a leased port too. FailedPrecondition names the address if it is taken.
  static Result<std::unique_ptr<TcpServer>> Listen(Loop* loop, const TcpServerOptions& options,
                                                   OnAccept on_accept);
  virtual ~TcpServer() = default;
  virtual uint16_t port() const = 0;
};

// Sends a few bytes to a port: connects, writes, and closes when that is done or `limit`
// has passed. Nothing is told. One descriptor meanwhile.
void SendOnce(Loop* loop, const std::string& numeric_host, uint16_t port, std::string bytes,
              Duration limit);

}  // namespace shoal::net
