// The HTTP/1.1 server: keep-alive, streamed replies, WebSockets and TLS on one port. For `shoal
// server` (src/api).
//
// It has I/O threads of its own and is independent of callers' event loops. Whatever a peer sends
// is bounded: sizes, counts, times, connections. Requests whose framing or target can be read in
// two ways are refused (request_head.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/http/server_exchange.h"

namespace shoal::net {

struct TlsServerOptions {
  // PEM files, the certificate with its chain; loaded again when they change. Both or none.
  std::string certificate_file;
  std::string key_file;
  // Without files: a directory for a self-signed certificate, which is made if it is not there
  // (server.crt, server.key with mode 0600; EC P-256). Both empty: no TLS.
  std::string self_signed_directory;
  // Host names and numeric addresses of the self-signed certificate, besides localhost, 127.0.0.1
  // and ::1. Other names than those of a stored certificate: it is kept, since peers have pinned
  // it.
  std::vector<std::string> names;

  bool enabled() const { return !certificate_file.empty() || !self_signed_directory.empty(); }
};

struct HttpServerLimits {
  size_t header_bytes = 16 << 10;      // request line and headers: 431, the target alone 414
  size_t header_count = 100;           // 431
  size_t body_memory = 256 << 20;      // of all request bodies held at once: 503
  size_t queued_bytes = 64 << 20;      // of one connection; it is closed
  size_t connections = 10'000;         // open at once: 503
  size_t connections_by_peer = 1'000;  // of one address (IPv6: one /64), not of the loopback: 503
  size_t websocket_message = 1 << 20;  // one incoming message, unpacked; closed with 1009
  Duration header_time =
      std::chrono::seconds(10);                    // from a request's first byte to its last header
  Duration body_grace = std::chrono::seconds(20);  // a body must come within this and …
  size_t body_rate = 4096;                         // … a second for each so many bytes: 408
  Duration idle_time = std::chrono::seconds(75);   // between two requests
  // A peer that takes nothing of what is queued for it is closed.
  Duration write_time = std::chrono::seconds(60);
  Duration ping_interval = std::chrono::seconds(20);  // of WebSockets; two without a sign: closed
};

// How long a request's body may be, or the reply that refuses it before the body is read.
using HttpBodyLimit = std::variant<size_t, HttpServerReply>;

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // numeric; "0.0.0.0" or "::" for all interfaces
  uint16_t port = 0;                  // 0: the kernel chooses
  TlsServerOptions tls;
  // On an I/O thread; must not block.
  std::function<void(std::shared_ptr<HttpExchange>)> handler;
  // On an I/O thread, before a body is read; the request has no body yet. A longer body is refused
  // with 413. Missing: 1 MiB.
  std::function<HttpBodyLimit(const HttpServerRequest& head)> max_body;
  HttpServerLimits limits;
  // Origins of pages that may use the server, besides its own: "https://dashboard.example".
  std::vector<std::string> allowed_origins;
  bool websocket_deflate = false;  // permessage-deflate where the peer offers it
  size_t threads = 2;
  const Clock* clock = RealClock::Get();
};

// Counters since the start, and connections now.
struct HttpServerStats {
  size_t connections = 0;
  uint64_t accepted = 0;
  uint64_t requests = 0;
  uint64_t refused_connections = 0;  // over a limit of connections
  uint64_t bad_requests = 0;         // refused before the handler: 400, 408, 413, 414, 431, …
  uint64_t accept_errors = 0;        // out of descriptors
};

// Serves from Start until destroyed. Thread-safe.
class HttpServer {
 public:
  // FailedPrecondition names the address if it is taken; InvalidArgument says which TLS file is
  // bad.
  static Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  // Closes all connections at once.
  virtual ~HttpServer() = default;
  virtual uint16_t port() const = 0;
  // "http://127.0.0.1:7117"
  virtual std::string url() const = 0;
  // SHA-256 of the certificate (DER) that is shown now: 64 lower-case hex digits; empty without
  // TLS.
  virtual std::string fingerprint() const = 0;
  virtual HttpServerStats stats() const = 0;
  // Stops accepting and closes idle connections; returns when the exchanges under way are finished
  // or `limit` has passed, after which the rest is closed. Not from a callback.
  virtual void Shutdown(Duration limit) = 0;
};

}  // namespace shoal::net
