// Files with several jobs, and groups, over the REST interface.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/client/api_client.h"
#include "base/status.h"
#include "controller/jobs/jobs.h"

namespace shoal::api {

// The body of the request that submits the file, after its `files` have been uploaded.
Result<json::object> FileRequest(const ApiClient& client, const controller::NewFile& file,
                                 const std::string& team,
                                 const std::function<void(const std::string&)>& on_note);
// The reply to it.
Result<std::vector<controller::SubmittedItem>> ParseSubmission(const json::object& reply);

// As in controller::Jobs.
Result<std::vector<json::object>> FindGroups(const ApiClient& client, const std::string& prefix);
// Removes the groups that ended at least `age` ago; returns their ids.
Result<std::vector<std::string>> PruneGroups(const ApiClient& client, Duration age);
// The target of a group's requests.
std::string GroupTarget(const std::string& team, const std::string& id);

}  // namespace shoal::api
