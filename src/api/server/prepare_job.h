// A job file of a request, or one that was stored with a group or a schedule, as the job that the
// server would run: parsed, with the team's policy, absolute paths and the engine's defaults.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "api/server/call.h"
#include "base/access/directory_owner.h"
#include "base/status.h"
#include "controller/groups/group_record.h"
#include "controller/run/validate_job.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"

namespace shoal::api {

inline constexpr const char* kJobFileName = "job.yaml";  // in messages

// With what its submission needs.
struct ParsedJob {
  job::Job job;
  job::FieldLocations locations;
  std::string engine;
  std::string directory;  // where programs start; empty: the job's own
  // As whom its tasks run, and whose files its submission may tell of; none: the server's.
  std::optional<UserIds> user;
};

// The directory of a team, which relative paths of its jobs refer to; made if it is not there, and
// given to the user as whom its tasks run.
Result<std::string> TeamFolder(const Backend& backend, const std::string& team,
                               const std::optional<UserIds>& user);

// The submission of a request, without its files.
controller::StoredSubmission SubmissionOf(const Backend& backend, const Call& call);

// `member`: of a job that stands for several; none: the job itself, with the values of its first
// member. InvalidArgument with line and column; PermissionDenied for what the team's policy does
// not allow.
Result<ParsedJob> PrepareJob(const Backend& backend, const controller::StoredSubmission& source,
                             std::optional<size_t> member = {});

// The answer to a job file that is refused: its errors with lines and columns, others as they are.
net::HttpServerReply JobProblem(const Status& status);

// The checks of a submission that the controller cannot make itself.
controller::JobValidation ValidationOf(const Backend& backend, const ParsedJob& parsed);

}  // namespace shoal::api
