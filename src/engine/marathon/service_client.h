// Authenticated HTTP client of a Mesos cluster's service, Marathon or Metronome. Used by
// marathon_api.cc and metronome.cc.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "net/http_client.h"

namespace shoal::engine::marathon {

// Credentials for Marathon and Metronome; at most one is set.
struct Credentials {
  std::string token;  // DC/OS token
  std::string user;   // "USER:PASSWORD"

  bool empty() const { return token.empty() && user.empty(); }
};
// From SHOAL_MARATHON_TOKEN, SHOAL_MARATHON_USER, or the file named by
// SHOAL_MARATHON_CREDENTIALS, which holds USER:PASSWORD or a token.
Result<Credentials> CredentialsFromEnvironment();

// Thread-safe. All calls block for at most 30 s. Unavailable if the service does not answer;
// Unauthenticated and PermissionDenied for 401 and 403.
class ServiceClient {
 public:
  // `name`: the service's name in messages. `authorities`: PEM file of trusted certificates; empty:
  // the machine's.
  static Result<std::unique_ptr<ServiceClient>> Make(const std::string& name,
                                                     const std::string& url,
                                                     const std::string& authorities,
                                                     const Credentials& credentials);
  const std::string& url() const { return http_->url(); }

  // A request for `target`, relative to the service's URL.
  net::HttpRequest Request(const std::string& method, const std::string& target) const;
  net::HttpRequest Request(const std::string& method, const std::string& target,
                           const json::object& body) const;
  // Sends a request. Returns the reply if its status is a success or `also`, else an error.
  Result<net::HttpReply> Call(const net::HttpRequest& request, int also = 0) const;
  // Sends a request whose response body is a stream.
  Result<std::unique_ptr<net::HttpStream>> Open(const net::HttpRequest& request) const;
  // Converts an unsuccessful reply to an error.
  Status Refusal(const net::HttpRequest& request, const net::HttpReply& reply) const;
  // The error for a response that cannot be decoded.
  Status Unreadable(const std::string& target, const Status& why) const;

 private:
  ServiceClient(std::string name, std::unique_ptr<net::HttpClient> http, std::string authorization)
      : name_(std::move(name)), http_(std::move(http)), authorization_(std::move(authorization)) {}

  const std::string name_;
  const std::unique_ptr<net::HttpClient> http_;
  const std::string authorization_;
};

}  // namespace shoal::engine::marathon
