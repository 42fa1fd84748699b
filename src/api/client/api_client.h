// Requests to a server's REST interface, with errors as the sentences of the server.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/client/login_file.h"
#include "base/json.h"
#include "base/status.h"
#include "net/http/http_session.h"

namespace shoal::api {

struct ApiRequest {
  std::string method = "GET";
  std::string target;  // "/api/v1/jobs?limit=20", percent-encoded
  std::string body = {};
  std::string content_type = {};  // of the body
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::chrono::milliseconds timeout{30'000};
};

// Thread-safe. Blocks, with deadlines.
class ApiClient {
 public:
  static Result<std::unique_ptr<ApiClient>> Make(const Login& login);

  const std::string& url() const { return login_.url; }

  // A reply of status 2xx. Others are errors with the server's sentence (problem.h). Unavailable,
  // with the remedy, if the server cannot be reached.
  Result<net::HttpReply> Call(const ApiRequest& request) const;
  // The same with a JSON body and a JSON reply; an empty reply is an empty object.
  Result<json::object> CallJson(const std::string& method, const std::string& target,
                                const json::object& body = {}) const;
  Result<json::object> Get(const std::string& target) const { return CallJson("GET", target); }
  // A stream of server-sent events.
  Result<std::unique_ptr<net::HttpStream>> OpenEvents(const std::string& target) const;

 private:
  ApiClient(Login login, std::unique_ptr<net::HttpSession> http)
      : login_(std::move(login)), http_(std::move(http)) {}
  net::HttpRequest Make(const ApiRequest& request) const;
  Status Explain(const Status& status) const;

  const Login login_;
  const std::unique_ptr<net::HttpSession> http_;
};

// "?a=b&c=d" of the pairs with a value, percent-encoded; empty without one.
std::string QueryText(const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace shoal::api
