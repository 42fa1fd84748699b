// An HTTP/1.1 client over a unix socket, as daemons of one machine are spoken to (Docker's, in
// engine/docker). One connection a call; calls block, with deadlines. What comes back is bounded.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "net/http.h"

namespace shoal::net {

// The connection itself, once the other side has agreed to speak another protocol on it.
struct Upgraded {
  UniqueFd fd;
  std::string early;  // what came with the reply's head
};

// Copyable, thread-safe: holds nothing but the path.
class UnixHttp {
 public:
  explicit UnixHttp(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  // The whole reply, whatever its status. NotFound if there is no such socket, PermissionDenied,
  // Unavailable if no server listens or the connection broke, DeadlineExceeded, ResourceExhausted
  // for a body over `max_body`, DataLoss for what is not HTTP.
  Result<HttpReply> Call(const HttpRequest& request, std::chrono::milliseconds timeout,
                         size_t max_body = kMaxHttpBody) const;
  // Returns with the reply's head; its body may be endless.
  Result<std::unique_ptr<HttpStream>> Open(const HttpRequest& request,
                                           std::chrono::milliseconds timeout) const;
  // With status 101 a connection; FailedPrecondition with the reply's text for any other.
  Result<Upgraded> Upgrade(const HttpRequest& request, std::chrono::milliseconds timeout) const;

 private:
  std::string path_;
};

}  // namespace shoal::net
