// The Job as JSON, in which the controller stores it and hands it to the coordinator (job.json).
// The round trip is exact: FromJson(ToJson(job)) == job.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "job/spec/job.h"

namespace shoal::job {

// Writes every field, including those with default values, so that a stored job keeps its meaning
// under a later version with other defaults. Times in milliseconds, memory in bytes, enumerations
// by name.
json::object ToJson(const Job& job);
// InvalidArgument names a field that is missing, has the wrong type or is out of range.
Result<Job> FromJson(const json::object& object);

std::string ToJsonText(const Job& job);
// InvalidArgument beyond 16 MiB.
Result<Job> FromJsonText(std::string_view text);

}  // namespace shoal::job
