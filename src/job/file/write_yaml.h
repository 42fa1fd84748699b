// The way back: a Job as the text of a job file. `shoal import` prints what it makes.
//
// Exact: ParseJob(WriteYaml(job)) is the job again, but for `file` and the places of learn values,
// for every job that ParseJob can make. What the parser would fill in by itself is left out, except
// the success rule, which is said always.
#pragma once

#include <string>

#include "job/spec/job.h"
#include "job/text/yaml_emitter.h"

namespace shoal::job {

// `comments` stand before the fields they name. O(fields). For a Job made by other means than
// ParseJob the text may be one that ParseJob refuses.
std::string WriteYaml(const Job& job, const Comments& comments = {});

}  // namespace shoal::job
