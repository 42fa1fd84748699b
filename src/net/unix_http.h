// An HTTP/1.1 client over a unix socket, as daemons of one machine are spoken to (Docker's, in
// engine/docker). One connection a call; calls block, with deadlines. What comes back is bounded.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace shoal::net {

struct HttpRequest {
  std::string method = "GET";
  std::string target;  // path and query, percent-encoded
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

struct HttpReply {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  // Empty if there is none.
  std::string Header(std::string_view lower_case_name) const;
};

// A reply whose body is read as it comes. Not thread-safe, but for Cancel.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Status and headers.
  virtual const HttpReply& head() const = 0;
  // What has come of the body, at least a byte; empty at its end. DeadlineExceeded if nothing came
  // in time: the next call goes on. Unavailable if the connection broke, Cancelled after Cancel.
  virtual Result<std::string> Next(std::chrono::milliseconds timeout) = 0;
  // From any thread: a Next that waits, and each later one, returns at once.
  virtual void Cancel() = 0;
};

// The connection itself, once the other side has agreed to speak another protocol on it.
struct Upgraded {
  UniqueFd fd;
  std::string early;  // what came with the reply's head
};

// Copyable, thread-safe: holds nothing but the path.
class UnixHttp {
 public:
  static constexpr size_t kMaxBody = 32 << 20;

  explicit UnixHttp(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  // The whole reply, whatever its status. NotFound if there is no such socket, PermissionDenied,
  // Unavailable if nobody listens or the connection broke, DeadlineExceeded, ResourceExhausted for
  // a body over `max_body`, DataLoss for what is not HTTP.
  Result<HttpReply> Call(const HttpRequest& request, std::chrono::milliseconds timeout,
                         size_t max_body = kMaxBody) const;
  // Returns with the reply's head; its body may be endless.
  Result<std::unique_ptr<HttpStream>> Open(const HttpRequest& request,
                                           std::chrono::milliseconds timeout) const;
  // With status 101 a connection; FailedPrecondition with the reply's text for any other.
  Result<Upgraded> Upgrade(const HttpRequest& request, std::chrono::milliseconds timeout) const;

 private:
  std::string path_;
};

// Of one path segment or query value: all but letters, digits, '-', '_', '.', '~' as %XX.
std::string PercentEncode(std::string_view text);

}  // namespace shoal::net
