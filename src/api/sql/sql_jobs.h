// What the process of a session asks of the server: jobs to run, to list and to stop.
#pragma once

#include <string>

#include "api/server/call.h"
#include "base/json.h"
#include "base/status.h"

namespace shoal::api {

// Of the jobs of a session, with its id.
inline constexpr const char* kSqlSessionLabel = "shoal.sql";

// Whose question it is.
struct SqlAsker {
  std::string session;
  std::string team;
  Principal principal;
};

// Submits the job of a question, {"job": YAML, "engine": …, "manifest": …, "blobs": PATH}, under
// this id, with the checks of a request and an entry in the audit log. `blobs` is read with the
// rights of the team's user.
Status SubmitSqlJob(const Backend& backend, const SqlAsker& asker, const json::object& question,
                    const std::string& id);
// {"jobs": […]}: the team's unfinished jobs and its last 100 ended ones.
Result<json::object> ListSqlJobs(const Backend& backend, const SqlAsker& asker);
// The job with this prefix, which the asker may stop. NotFound, PermissionDenied.
Result<std::string> FindSqlJob(const Backend& backend, const SqlAsker& asker,
                               const std::string& prefix);

// {"op": "answer", …} to a question.
json::object SqlAnswer(int64_t number, const Status& status);
json::object SqlJobAnswer(int64_t number, const controller::JobRecord& record);

}  // namespace shoal::api
