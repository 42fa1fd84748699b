// Client of Marathon's REST interface. Used by marathon_engine.cc.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"
#include "engine/marathon/decode.h"
#include "engine/marathon/service_client.h"

namespace shoal::engine::marathon {

// Thread-safe. All calls block for at most 30 s. Unavailable if Marathon does not answer;
// Unauthenticated and PermissionDenied for 401 and 403.
class MarathonApi {
 public:
  // `authorities`: PEM file of trusted certificates; empty: the machine's.
  static Result<std::unique_ptr<MarathonApi>> Make(const std::string& url,
                                                   const std::string& authorities,
                                                   const Credentials& credentials);
  const std::string& url() const { return client_->url(); }

  // Total resources of the cluster, used or not.
  Result<Capacity> Numbers() const;
  // Result of a change.
  struct Change {
    std::string deployment;                // id of the started deployment; empty: no change
    std::vector<std::string> conflicting;  // deployments that block the change; it was not made
  };
  Result<Change> PutGroup(const json::object& group, bool force) const;
  Result<Change> KillTasks(const std::vector<std::string>& ids, bool force) const;
  // Returns the deployment that removes the group; empty if there is no such group.
  Result<std::string> DeleteGroup(const std::string& id) const;
  // Ids of the running deployments.
  Result<std::vector<std::string>> Deployments() const;
  Result<std::vector<App>> AppsOf(const std::string& job_id) const;
  Result<std::vector<PendingApp>> Queue() const;
  // Stream of task state changes and ended deployments.
  Result<std::unique_ptr<net::HttpStream>> Events() const;

 private:
  explicit MarathonApi(std::unique_ptr<ServiceClient> client) : client_(std::move(client)) {}
  Result<Change> SendChange(const net::HttpRequest& request) const;

  const std::unique_ptr<ServiceClient> client_;
};

}  // namespace shoal::engine::marathon
