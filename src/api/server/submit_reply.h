// The answer to a job file that is refused.
#pragma once

#include "api/rest/problem.h"
#include "api/server/prepare_job.h"

namespace shoal::api {

// Errors of the job file with their lines and columns; others as they are.
inline net::HttpServerReply JobProblem(const Status& status) {
  constexpr int kNoRoom = 507;
  if (status.code() == Code::kResourceExhausted) return Problem(kNoRoom, status.message());
  if (status.code() != Code::kInvalidArgument) return Problem(status);
  return Problem(ParseJobFileErrors(status.message(), kJobFileName));
}

}  // namespace shoal::api
