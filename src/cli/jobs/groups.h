// Groups, the jobs of a matrix or a sweep together, for commands that also take one job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "controller/jobs/jobs.h"

namespace shoal::cli {

// The group whose id is `prefix`, or the only one whose id begins so, as the server lists it;
// nullopt for a job's id and without a server. InvalidArgument lists some of several.
Result<std::optional<json::object>> FindGroup(controller::Jobs* jobs, const std::string& prefix);

// Facts, and the table of members.
std::string GroupText(const json::object& group);
// What its members wait for that have no job yet: one sentence with a line feed.
std::string GroupWaits(const json::object& group);
// One row for each group.
std::string GroupTable(const std::vector<json::object>& groups);

}  // namespace shoal::cli
