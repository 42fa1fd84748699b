// Writes a Job as the text of a job file, the inverse of ParseJob. `shoal import` prints the
// result.
//
// Exact for every job that ParseJob can make: ParseJob(WriteYaml(job)) is the same job, except
// `file` and the locations of learn values. Omits fields that the parser would fill in with the
// same value, but always writes the success rule.
#pragma once

#include <string>

#include "job/spec/job.h"
#include "job/text/yaml_emitter.h"

namespace shoal::job {

// Writes `comments` before the fields they name. O(fields). For a Job that ParseJob cannot make,
// ParseJob may refuse the text.
std::string WriteYaml(const Job& job, const Comments& comments = {});

}  // namespace shoal::job
