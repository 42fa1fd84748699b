// WebSocket (RFC 6455), both sides: messages with bounds over TCP for the rendezvous and for event
// streams.
//
// Compression is off, TCP_NODELAY on. A client that speaks plain HTTP or garbage to a server's port
// gets a short answer and is closed; what exceeds a limit closes its connection and harms nothing
// else. Everything belongs to the loop's thread. Boost.Beast is behind it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "net/event_loop.h"

namespace shoal::net {

// One open connection. Destroying it closes the socket at once (what was queued may be lost; see
// Close).
class WebSocket {
 public:
  // `text` false: a binary message. The bytes are valid during the call.
  using OnMessage = std::function<void(std::string_view bytes, bool text)>;
  // OK when the peer closed in order; otherwise why. Called once, nothing comes after it, and never
  // from within a method called on the same object.
  using OnClose = std::function<void(const Status&)>;

  virtual ~WebSocket() = default;

  // Starts reading; call once. Both callbacks may destroy the WebSocket.
  virtual void Start(OnMessage on_message, OnClose on_close) = 0;

  // Queues a message; nothing after Close. Never blocks, so watch queued_bytes(): a producer that
  // can wait stops above its own limit and goes on in the drain callback.
  virtual void SendText(std::string bytes) = 0;
  virtual void SendBinary(std::string bytes) = 0;
  // The same bytes to many without a copy for each.
  virtual void SendShared(std::shared_ptr<const std::string> bytes, bool text) = 0;
  virtual size_t queued_bytes() const = 0;
  // Called whenever everything that was queued has gone to the kernel.
  virtual void OnDrain(std::function<void()> fn) = 0;

  // Sends what is queued, then the closing handshake with this reason (cut to 120 bytes); gives up
  // after 2 s. on_close follows.
  virtual void Close(std::string_view reason) = 0;

  // "127.0.0.1:4711"
  virtual const std::string& peer() const = 0;
  // The address of this side of the connection, without the port: how the peer sees us.
  virtual const std::string& local_host() const = 0;
  // Why the peer closed, where it said so.
  virtual std::string close_reason() const = 0;
};

struct WebSocketLimits {
  size_t message_bytes = 1 << 20;  // one incoming message
  Duration handshake = std::chrono::seconds(5);
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // numeric; "0.0.0.0" or "::" for all interfaces
  uint16_t port = 0;               // 0: the kernel chooses
  UniqueFd listener;               // instead of host and port: a bound or listening socket
  std::string path = "/";          // another path is answered with 404
  size_t connections = 1024;       // open at once; more are closed at once
  WebSocketLimits limits;
};

// Accepts until destroyed; the connections that it gave away live on.
class WebSocketServer {
 public:
  using OnAccept = std::function<void(std::unique_ptr<WebSocket>)>;
  // FailedPrecondition names the address if it is taken.
  static Result<std::unique_ptr<WebSocketServer>> Listen(Loop* loop, ServerOptions options,
                                                         OnAccept on_accept);
  virtual ~WebSocketServer() = default;
  virtual uint16_t port() const = 0;
};

struct ConnectOptions {
  std::string host;  // numeric or a name
  uint16_t port = 0;
  std::string path = "/";
  WebSocketLimits limits;  // `handshake` bounds name resolution, connection and upgrade together
};

// A connection that is being made; destroying it gives up, and the callback never comes.
class Connecting {
 public:
  virtual ~Connecting() = default;
};

// Calls `done` once, never from within this call: Unavailable if no server listens or the name does
// not resolve (yet), DeadlineExceeded if the connection was accepted without an answer, or
// FailedPrecondition if the listener is no WebSocket server.
[[nodiscard]] std::unique_ptr<Connecting> Connect(
    Loop* loop, ConnectOptions options,
    std::function<void(Result<std::unique_ptr<WebSocket>>)> done);

}  // namespace shoal::net
