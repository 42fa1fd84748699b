// Requests to a server's REST interface, with errors as the sentences of the server.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/client/login_file.h"
#include "base/clock.h"
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
//
// With several URLs in the login, the servers of one store, each call goes to the one that leads: a
// server that cannot be reached, or answers that it is a standby, is followed by the next, for at
// most kTakeover, in which another server takes over. Every request of ours may be repeated.
class ApiClient {
 public:
  static constexpr Duration kTakeover = std::chrono::seconds(20);

  static Result<std::unique_ptr<ApiClient>> Make(const Login& login);

  // Of the server that answered last.
  const std::string& url() const { return servers_[current_]->url(); }

  // A reply of status 2xx. Others are errors with the server's sentence (problem.h). Unavailable,
  // with the remedy, if the server cannot be reached.
  Result<net::HttpReply> Call(const ApiRequest& request) const;
  // The same with a JSON body and a JSON reply; an empty reply is an empty object.
  Result<json::object> CallJson(const std::string& method, const std::string& target,
                                const json::object& body = {}) const;
  Result<json::object> Get(const std::string& target) const { return CallJson("GET", target); }
  // A stream of server-sent events; with a body it is a POST.
  Result<std::unique_ptr<net::HttpStream>> OpenEvents(const std::string& target,
                                                      const std::string& body = "") const;

 private:
  using Servers = std::vector<std::unique_ptr<net::HttpSession>>;
  ApiClient(Login login, Servers servers)
      : login_(std::move(login)), servers_(std::move(servers)) {}
  net::HttpRequest Make(const ApiRequest& request) const;
  Status Explain(const std::string& url, const Status& status) const;
  // Calls `call` for the present server, and for others while `head_of` its result says that it
  // does not lead.
  template <typename T>
  Result<T> OnLeader(const std::function<Result<T>(net::HttpSession&)>& call,
                     const net::HttpReply& (*head_of)(const T&)) const;
  // The server to ask after `server`, which did not lead; `named`: the one that it says leads.
  size_t After(size_t server, const std::string& named) const;

  const Login login_;
  const Servers servers_;
  mutable std::atomic<size_t> current_{0};
};

// "?a=b&c=d" of the pairs with a value, percent-encoded; empty without one.
std::string QueryText(const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace shoal::api
