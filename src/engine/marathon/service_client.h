// Calls to one HTTP service of a Mesos cluster, Marathon or Metronome, as one that it knows. Used
// by marathon_api.cc and metronome.cc.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "net/http_client.h"

namespace shoal::engine::marathon {

// How Marathon, and Metronome beside it, know us; at most one is set.
struct Credentials {
  std::string token;  // of DC/OS
  std::string user;   // "USER:PASSWORD"

  bool empty() const { return token.empty() && user.empty(); }
};
// SHOAL_MARATHON_TOKEN, SHOAL_MARATHON_USER, or what the file holds that
// SHOAL_MARATHON_CREDENTIALS names: USER:PASSWORD, else a token.
Result<Credentials> CredentialsFromEnvironment();

// Thread-safe. All calls block, at most half a minute. Unavailable if the service does not answer,
// Unauthenticated and PermissionDenied as it says.
class ServiceClient {
 public:
  // `name`: what messages call it. `authorities`: a PEM file; empty: the machine's.
  static Result<std::unique_ptr<ServiceClient>> Make(const std::string& name,
                                                     const std::string& url,
                                                     const std::string& authorities,
                                                     const Credentials& credentials);
  const std::string& url() const { return http_->url(); }

  // `target` is below the service's own URL.
  net::HttpRequest Request(const std::string& method, const std::string& target) const;
  net::HttpRequest Request(const std::string& method, const std::string& target,
                           const json::object& body) const;
  // The reply, if its status says success or `also`.
  Result<net::HttpReply> Call(const net::HttpRequest& request, int also = 0) const;
  // Whose body may be endless.
  Result<std::unique_ptr<net::HttpStream>> Open(const net::HttpRequest& request) const;
  // What it says that is no success, as an error.
  Status Refusal(const net::HttpRequest& request, const net::HttpReply& reply) const;
  // Of an answer, not of what we sent.
  Status Unreadable(const std::string& target, const Status& why) const;

 private:
  ServiceClient(std::string name, std::unique_ptr<net::HttpClient> http, std::string authorization)
      : name_(std::move(name)), http_(std::move(http)), authorization_(std::move(authorization)) {}

  const std::string name_;
  const std::unique_ptr<net::HttpClient> http_;
  const std::string authorization_;
};

}  // namespace shoal::engine::marathon
