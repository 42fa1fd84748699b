// Calls to one Marathon. Used by marathon_engine.cc.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"
#include "engine/marathon/decode.h"
#include "net/http_client.h"

namespace shoal::engine::marathon {

// How Marathon knows us; at most one is set.
struct Credentials {
  std::string token;  // of DC/OS
  std::string user;   // "USER:PASSWORD"
};
// SHOAL_MARATHON_TOKEN, SHOAL_MARATHON_USER, or what the file holds that
// SHOAL_MARATHON_CREDENTIALS names: USER:PASSWORD, else a token.
Result<Credentials> CredentialsFromEnvironment();

// Thread-safe. All calls block, at most half a minute. Unavailable if Marathon does not answer,
// Unauthenticated and PermissionDenied as it says.
class MarathonApi {
 public:
  // `authorities`: a PEM file; empty: the machine's. `proxy`: as net::HttpClient takes it.
  static Result<std::unique_ptr<MarathonApi>> Make(const std::string& url,
                                                   const std::string& authorities,
                                                   const Credentials& credentials);
  const std::string& url() const { return http_->url(); }

  // All of the cluster's, used or not.
  Result<Capacity> Numbers() const;
  // What came of a change.
  struct Change {
    std::string deployment;                // that was begun; empty: nothing was to be done
    std::vector<std::string> conflicting;  // what it waits for: nothing was done
  };
  Result<Change> PutGroup(const json::object& group, bool force) const;
  Result<Change> KillTasks(const std::vector<std::string>& ids, bool force) const;
  // The deployment that removes it; empty if there is no such group.
  Result<std::string> DeleteGroup(const std::string& id) const;
  // Those that run.
  Result<std::vector<std::string>> Deployments() const;
  Result<std::vector<App>> AppsOf(const std::string& job_id) const;
  Result<std::vector<Waiting>> Queue() const;
  // Of tasks' changes of state and of ended deployments.
  Result<std::unique_ptr<net::HttpStream>> Events() const;

 private:
  MarathonApi(std::unique_ptr<net::HttpClient> http, std::string authorization)
      : http_(std::move(http)), authorization_(std::move(authorization)) {}
  net::HttpRequest Request(const std::string& method, const std::string& target) const;
  // The reply, if its status says success or `also`.
  Result<net::HttpReply> Call(const net::HttpRequest& request, int also = 0) const;
  Status Refusal(const net::HttpRequest& request, const net::HttpReply& reply) const;
  Result<Change> SendChange(const net::HttpRequest& request) const;

  const std::unique_ptr<net::HttpClient> http_;
  const std::string authorization_;
};

}  // namespace shoal::engine::marathon
