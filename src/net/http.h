// HTTP/1.1 as a client speaks it: requests, replies, replies that are read as they come, and
// connections that leave HTTP behind. Over unix sockets (unix_http.h) and over TCP and TLS
// (http_client.h). What comes back is bounded.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace shoal::net {

inline constexpr size_t kMaxHttpBody = 32 << 20;

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
  // The next bytes of the body, at least one; empty at its end. DeadlineExceeded if nothing came
  // in time: the next call goes on. Unavailable if the connection broke, Cancelled after Cancel.
  virtual Result<std::string> Next(std::chrono::milliseconds timeout) = 0;
  // From any thread: a Next that waits, and each later one, returns at once.
  virtual void Cancel() = 0;
};

// Of one path segment or query value: all but letters, digits, '-', '_', '.', '~' as %XX.
std::string PercentEncode(std::string_view text);

}  // namespace shoal::net
