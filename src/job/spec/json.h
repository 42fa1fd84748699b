// The Job as JSON: how the controller hands it to the coordinator (job.json) and keeps it in its
// store. Exact: FromJson(ToJson(job)) == job.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "job/spec/job.h"

namespace shoal::job {

// Every field, also those at their defaults: a job that was stored means the same under a later
// version with other defaults. Times in milliseconds, memory in bytes, enumerations by name.
json::object ToJson(const Job& job);
// InvalidArgument names the field that is missing, of another type or out of its range.
Result<Job> FromJson(const json::object& object);

std::string ToJsonText(const Job& job);
// At most 16 MiB.
Result<Job> FromJsonText(std::string_view text);

}  // namespace shoal::job
