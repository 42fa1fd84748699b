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
#include "engine/marathon/service_client.h"

namespace shoal::engine::marathon {

// Thread-safe. All calls block, at most half a minute. Unavailable if Marathon does not answer,
// Unauthenticated and PermissionDenied as it says.
class MarathonApi {
 public:
  // `authorities`: a PEM file; empty: the machine's.
  static Result<std::unique_ptr<MarathonApi>> Make(const std::string& url,
                                                   const std::string& authorities,
                                                   const Credentials& credentials);
  const std::string& url() const { return client_->url(); }

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
  Result<std::vector<PendingApp>> Queue() const;
  // Of tasks' changes of state and of ended deployments.
  Result<std::unique_ptr<net::HttpStream>> Events() const;

 private:
  explicit MarathonApi(std::unique_ptr<ServiceClient> client) : client_(std::move(client)) {}
  Result<Change> SendChange(const net::HttpRequest& request) const;

  const std::unique_ptr<ServiceClient> client_;
};

}  // namespace shoal::engine::marathon
