// An HTTP client for many calls to one server: connections are kept and used again, redirects are
// followed where that is safe, and the server's certificate may be pinned. For the commands that
// talk to `shoal server` (api/client). Single calls to foreign servers: http_client.h.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/http.h"
#include "net/http_client.h"

namespace shoal::net {

struct HttpSessionOptions {
  TlsOptions tls;     // with `pinned_sha256`, for servers of a self-signed certificate
  std::string proxy;  // as HttpClient::Make; see ProxyFromEnvironment
  int redirects = 5;  // followed in one call
  // Where a redirect may lead besides the server itself: "HOST:PORT". Authorization, Cookie and
  // Proxy-Authorization are not sent there, and the pin does not hold there.
  std::vector<std::string> redirect_hosts;
  size_t idle_connections = 4;  // kept
  Duration idle_time = std::chrono::seconds(30);
  // As HttpClient::Make: where connections may lead; null: everywhere. Must outlive the session.
  const AddressPolicy* addresses = nullptr;
  const Clock* clock = RealClock::Get();
};

// Thread-safe; calls of several threads use several connections.
class HttpSession {
 public:
  // `url`: "http[s]://HOST[:PORT][/PREFIX]"; the prefix is put before each target. InvalidArgument.
  static Result<std::unique_ptr<HttpSession>> Make(const std::string& url,
                                                   HttpSessionOptions options = {});
  ~HttpSession();

  const std::string& url() const;

  // The whole reply, whatever its status but for redirects that are followed. Errors as
  // HttpClient::Call, and FailedPrecondition for a redirect that is not followed. A kept connection
  // that the server has closed meanwhile is replaced, and the request sent again, if it is
  // idempotent (GET, HEAD, PUT, DELETE, OPTIONS, or with an Idempotency-Key).
  Result<HttpReply> Call(const HttpRequest& request, std::chrono::milliseconds timeout,
                         size_t max_body = kMaxHttpBody);
  // Returns with the reply's head; its body may be endless (server-sent events: SseReader). Its
  // connection is closed with it.
  Result<std::unique_ptr<HttpStream>> Open(const HttpRequest& request,
                                           std::chrono::milliseconds timeout);
  // Connections made so far.
  size_t connections_made() const;

 private:
  struct Impl;
  explicit HttpSession(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace shoal::net
